#include "executor/control/watchdog.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "executor/clock.h"

namespace stave {

namespace {

constexpr Ticks kSecondNs = 1'000'000'000;
constexpr Ticks kLongestLookNs = kSecondNs / 4;

std::string rank_text(std::uint32_t rank) { return "rank " + std::to_string(rank); }

// "12.3 s"
std::string seconds_text(Ticks time) {
  const Ticks tenths = time / (kSecondNs / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

std::string describe_waits(const std::vector<Position>& positions, std::uint32_t from) {
  const auto size = static_cast<std::uint32_t>(positions.size());
  std::vector<std::uint8_t> seen(size, 0);
  std::string result = rank_text(from);
  std::uint32_t at = from;
  while (at < size && positions[at].waits_for < size && seen[at] == 0) {
    seen[at] = 1;
    const std::uint32_t next = positions[at].waits_for;
    result += (at == from ? " waits for " : ", which waits for ") + rank_text(next);
    at = next;
  }
  if (at < size && seen[at] != 0) return result + ": a circle";
  const std::string doing = at < size ? positions[at].doing : "";
  if (at != from) result += ", which";
  return result + (doing.empty() ? " is between two ops" : " is at " + doing);
}

Watchdog::Watchdog(Control& control, std::uint32_t lanes, Describe describe,
                   std::function<void(const std::string&)> warn, WatchdogTimes times)
    : control_(control), describe_(std::move(describe)), warn_(std::move(warn)), times_(times), lanes_(lanes) {
  control_.set_position([this] { return position(); });
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  control_.set_position(nullptr);
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::begin(std::uint32_t lane, std::uint64_t what, Ticks predicted_ns) {
  Lane& mine = lanes_[lane];
  const Ticks most = kMaxTicks / times_.factor;
  mine.limit.store(std::max(times_.least_ns, times_.factor * std::clamp<Ticks>(predicted_ns, 0, most)),
                   std::memory_order_relaxed);
  mine.what.store(what, std::memory_order_relaxed);
  mine.began.store(now_ns(), std::memory_order_release);
  latest_.store(lane, std::memory_order_release);
}

void Watchdog::end(std::uint32_t lane) { lanes_[lane].began.store(0, std::memory_order_release); }

Position Watchdog::position() const {
  std::uint32_t longest = kNobody;
  Ticks first = kMaxTicks;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    const Ticks began = lanes_[l].began.load(std::memory_order_acquire);
    if (began == 0 || began >= first) continue;
    first = began;
    longest = l;
  }
  // By now it may be at the next one, which is as true.
  const auto at = [&](std::uint32_t lane) { return describe_(lane, lanes_[lane].what.load(std::memory_order_relaxed)); };
  if (longest != kNobody) return at(longest);
  const std::uint32_t latest = latest_.load(std::memory_order_acquire);
  return latest == kNobody ? Position() : Position("the end of a step, after " + at(latest).doing);
}

void Watchdog::watch() {
  const std::chrono::nanoseconds pause(std::clamp<Ticks>(times_.grace_ns / 4, 1'000'000, kLongestLookNs));
  std::unique_lock lock(mutex_);
  while (!ending_) {
    // Of the system clock: the thread sanitizer of GCC 12 does not know the wait on a steady one.
    changed_.wait_until(lock, std::chrono::system_clock::now() + pause);
    if (ending_ || control_.is_aborted()) continue;
    lock.unlock();
    const Ticks now = now_ns();
    for (std::uint32_t l = 0; l < lanes_.size(); ++l) look_at(l, now);
    lock.lock();
  }
}

void Watchdog::look_at(std::uint32_t l, Ticks now) {
  Lane& lane = lanes_[l];
  const Ticks began = lane.began.load(std::memory_order_acquire);
  const std::uint64_t what = lane.what.load(std::memory_order_relaxed);
  const Ticks limit = lane.limit.load(std::memory_order_relaxed);
  if (began == 0 || now - began <= limit || lane.began.load(std::memory_order_acquire) != began) return;
  const std::string late = rank_text(control_.rank()) + ": " + describe_(l, what).doing + " has not ended after " +
                           seconds_text(now - began);
  if (lane.warned != began) {
    lane.warned = began;
    warn_of(late + "; " + seconds_text(limit) + " is the most");
  } else if (now - began > limit + times_.grace_ns) {
    const Result<Whereabouts> all = control_.whereabouts();
    control_.abort(all ? late + "; " + describe_waits(all.value().ranks, control_.rank()) : late);
  }
}

void Watchdog::warn_of(const std::string& what) {
  const Result<Whereabouts> all = control_.whereabouts();
  if (!all || !all.value().is_first) return;
  std::string text = what;
  for (std::uint32_t r = 0; r < control_.size(); ++r) {
    const Position& each = all.value().ranks[r];
    text += "\n  " + rank_text(r) + ": " + (each.doing.empty() ? "between two ops" : each.doing);
    if (each.waits_for != kNobody) text += ", waits for " + rank_text(each.waits_for);
  }
  warn_(text);
}

}  // namespace stave
