// The clocks of a run: the wall, the CPU time of a thread, and a sleep to a point of time that a stop can cut short.
// Which clock a run keeps is said in RunOptions; the arithmetic of virtual time is in run.cpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/ticks.h"

namespace stave {

enum class Clock : std::uint8_t {
  /// An op lasts as long as the wall clock says.
  Wall,
  /// An op lasts the CPU time of its thread, a message its priced time; clocks travel with the messages.
  Virtual,
};

/// Monotonic time. Unit: ns.
Ticks now_ns();

/// CPU time the calling thread has used. Unit: ns. Cost: about 0.4 us.
Ticks thread_cpu_ns();

/// Lets the calling thread sleep to within a few microseconds (Linux allows itself 50 us by default).
void sharpen_sleep_of_thread();

/// Waits until `now_ns()` reaches `time`, looking at `stop` at least every 50 ms; the last 50 us are spun, since a
/// sleep wakes late by about as much. False if `stop` was set first.
bool sleep_until_ns(Ticks time, const std::atomic<bool>& stop);

/// Cores this process may run on, at least 1.
unsigned usable_cores();

}  // namespace stave
