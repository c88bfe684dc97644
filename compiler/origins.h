// Where the ops of an expanded schedule were written, found by expanding the device in question once more.
#pragma once

#include <memory>

#include "compiler/expansion.h"
#include "compiler/schedule.h"

namespace stave {

std::shared_ptr<const Origins> make_origins(std::shared_ptr<const Expansion> expansion);

}  // namespace stave
