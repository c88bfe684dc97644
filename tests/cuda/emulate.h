// Runs the source of CUDA kernels on the CPU, thread for thread: to include before a .cu file that g++ compiles. A block's
// threads are fibers that change places at __syncthreads, those of every second launch in reverse order, so that a result
// that needs a barrier which is not there differs. A launch is a host function of its stream. One stream at a time.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "executor/cuda/check.h"

// Blocks run one after another, so that what a block shares may be shared by all.
#undef __shared__
#define __shared__ static

inline uint3 threadIdx;
inline uint3 blockIdx;
inline dim3 blockDim;
inline dim3 gridDim;

namespace emulation {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;

struct Fiber {
  std::vector<char> stack = std::vector<char>(kStackBytes);
  ucontext_t start;
  jmp_buf at;
  uint3 index;
  bool started = false;
  bool ended = false;
};

inline std::vector<std::unique_ptr<Fiber>> fibers;
inline Fiber* current = nullptr;
inline const std::function<void()>* kernel = nullptr;
inline jmp_buf scheduler;
inline unsigned launches = 0;

// A fiber lives on to be a thread of the next block.
inline void body() {
  for (;;) {
    (*kernel)();
    current->ended = true;
    if (_setjmp(current->at) == 0) _longjmp(scheduler, 1);
  }
}

[[gnu::noinline]] inline void resume(Fiber& fiber) {
  current = &fiber;
  threadIdx = fiber.index;
  if (_setjmp(scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.at, 1);
  fiber.started = true;
  setcontext(&fiber.start);
}

[[gnu::noinline]] inline void run_block(unsigned threads, bool reversed) {
  while (fibers.size() < threads) {
    Fiber& fiber = *fibers.emplace_back(std::make_unique<Fiber>());
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.data();
    fiber.start.uc_stack.ss_size = fiber.stack.size();
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, body, 0);
  }
  for (unsigned i = 0; i < threads; ++i) {
    fibers[i]->index = {i % blockDim.x, i / blockDim.x, 0};
    fibers[i]->ended = false;
  }
  for (bool runs = true; runs;) {
    runs = false;
    for (unsigned i = 0; i < threads; ++i) {
      Fiber& fiber = *fibers[reversed ? threads - 1 - i : i];
      if (fiber.ended) continue;
      resume(fiber);
      runs = true;
    }
  }
}

inline void run(dim3 grid, dim3 block, const std::function<void()>& call) {
  kernel = &call;
  gridDim = grid;
  blockDim = block;
  const bool reversed = ++launches % 2 == 0;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        run_block(block.x * block.y, reversed);
      }
}

// What is enqueued lives on: it may have been captured, and be run again.
inline void launch(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> call, const char* name) {
  static std::vector<std::unique_ptr<std::function<void()>>> all;
  all.push_back(std::make_unique<std::function<void()>>([=] { run(grid, block, call); }));
  stave::check(cudaLaunchHostFunc(
                   stream, [](void* data) { (*static_cast<std::function<void()>*>(data))(); }, all.back().get()),
               name);
}

}  // namespace emulation

[[gnu::noinline]] inline void __syncthreads() {
  if (_setjmp(emulation::current->at) == 0) _longjmp(emulation::scheduler, 1);
}

#define STAVE_LAUNCH(kernel, grid, block, stream, ...) \
  ::emulation::launch((grid), (block), (stream), [=] { kernel(__VA_ARGS__); }, #kernel)
