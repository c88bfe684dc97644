#include "executor/reduction.h"

#include <algorithm>
#include <cstring>

#include "executor/gradients.h"

namespace stave {

void reduce_gradients(std::span<Stage* const> replicas) {
  std::vector<GradientView> all;
  for (Stage* replica : replicas) all.push_back(replica->gradients());
  sum_gradients(all);
}

void reduce_tied(const Partition& model, Workload& workload, std::span<const StageId> group) {
  std::vector<GradientView> firsts;
  for (StageId s : group) firsts.push_back(workload.stage(s)->tied_gradients());
  sum_gradients(firsts);
  for (StageId s : group)
    for (std::uint32_t r = 1; r < model.devices[s].size(); ++r)
      std::memcpy(workload.stage(s, r)->tied_gradients().data, firsts.front().data, bytes_of(firsts.front()));
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
