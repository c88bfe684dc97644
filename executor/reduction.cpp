#include "executor/reduction.h"

#include <algorithm>
#include <cstring>

#include "executor/gradients.h"

namespace stave {

void reduce_gradients(std::span<Stage* const> replicas) {
  if (replicas.size() < 2) return;
  const GradientView sum = replicas.front()->gradients();
  for (Stage* replica : replicas.subspan(1)) add_gradients(sum, replica->gradients());
  const std::size_t size = sum.element == Element::Float32 ? sizeof(float) : sizeof(std::uint64_t);
  for (Stage* replica : replicas.subspan(1))
    if (sum.count != 0) std::memcpy(replica->gradients().data, sum.data, sum.count * size);
}

std::vector<Stage*> replicas_of(const Partition& model, Workload& workload, StageId s) {
  std::vector<Stage*> result;
  for (std::uint32_t r = 0; r < model.devices[s].size(); ++r) result.push_back(workload.stage(s, r));
  return result;
}

void Reductions::begin_step() { meetings_.assign(plan_.meetings.size(), {}); }

bool Reductions::meet(const Team& team, std::uint32_t position, Times& times,
                      const std::function<Times(Ticks)>& reduce) {
  const std::uint32_t which = plan_.meeting_of[position];
  std::unique_lock lock(mutex_);
  Meeting& meeting = meetings_[which];
  meeting.times.start = std::max(meeting.times.start, times.start);
  if (++meeting.here == plan_.meetings[which].size()) {
    // The others of this meeting wait, and have ended what they did before; other meetings may go on.
    lock.unlock();
    const Times taken = reduce(meeting.times.start);
    lock.lock();
    meeting.times = taken;
    meeting.ended = true;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return meeting.ended || team.stopped(); });
  times = meeting.times;
  return meeting.ended && !team.stopped();
}

void Reductions::wake() {
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();
}

}  // namespace stave
