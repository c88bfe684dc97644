// What the stand-in for the CUDA runtime has for those of NCCL and cuBLASLt: a clock, and a list of sins.
//
// The clock: when the items of a queue begin and end on their GPU. An item begins when it was enqueued, the one before it
// on its queue has ended, and what it waits for has. One that has a length ends that much later, and the thread of its
// queue sleeps until then; one that has none ends when its work is done. So a host that runs the threads of several GPUs
// late does not show in the times of events, and what the program under test does late does.
#pragma once

#include <cstdint>

extern "C" {

/// Of the queue whose item the calling thread runs, in ns of CLOCK_MONOTONIC.
std::uint64_t* cudaStandInClock();
/// Moves it on, and returns once it is that late.
void cudaStandInLast(std::uint64_t ns);
/// Least length of a kernel, FAKE_CUDA_KERNEL_US.
std::uint64_t cudaStandInKernelNs();

/// Says on stderr what the program did wrong. With FAKE_CUDA_STRICT the process then ends with status 70.
void cudaStandInMisuse(const char* library, const char* what);

}  // extern "C"
