#include "scheduler/overlap.h"

#include <doctest/doctest.h>

#include "compiled.h"

