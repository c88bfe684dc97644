// stave-gpu: the same program, with CUDA's libraries.
#include "cli/program.h"
#include "executor/cuda/gpu.h"

int main(int count, char** arguments) {
  stave::gpu_maker = stave::make_cuda_gpu;
  return stave::run_program(count, arguments);
}
