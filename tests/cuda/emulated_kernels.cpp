// The kernels of executor/cuda as they are, for the CPU.
#include "emulate.h"

#include "executor/cuda/kernels/attention.cu"
#include "executor/cuda/kernels/ends.cu"
#include "executor/cuda/kernels/norm.cu"
#include "executor/cuda/kernels/pointwise.cu"
