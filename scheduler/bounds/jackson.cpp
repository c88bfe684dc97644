#include "scheduler/bounds/jackson.h"

#include <algorithm>
#include <queue>

namespace stave::bounds {

Ticks jackson(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
  const auto shorter_tail = [](const Job& a, const Job& b) { return a.tail < b.tail; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter_tail)> ready(shorter_tail);
  Ticks now = 0;
  Ticks result = 0;
  std::size_t next = 0;
  while (next < jobs.size() || !ready.empty()) {
    if (ready.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next) ready.push(jobs[next]);
    // The longest tail first, until a new job comes.
    Job job = ready.top();
    ready.pop();
    const Ticks until = next < jobs.size() ? jobs[next].head : kMaxTicks * 2;
    if (job.length > until - now) {
      job.length -= until - now;
      now = until;
      ready.push(job);
      continue;
    }
    now += job.length;
    result = std::max(result, now + job.tail);
  }
  return result;
}

void Busy::add(Ticks head, Ticks length) {
  end_ = std::max(end_, head);
  if (length == 0) return;
  if (spans_.empty() || head > spans_.back().end) {
    spans_.push_back({head, head + length});
    end_ = std::max(end_, head + length);
    return;
  }
  auto first = std::lower_bound(spans_.begin(), spans_.end(), head, [](const Span& a, Ticks t) { return a.end < t; });
  Span merged{std::min(head, first->begin), head};
  auto last = first;
  Ticks now = head;
  // Into the gaps from `head` on.
  for (; last != spans_.end(); ++last) {
    if (last->begin > now) {
      const Ticks gap = last->begin - now;
      if (length < gap) break;
      length -= gap;
    }
    now = last->end;
    if (length == 0) {
      ++last;
      break;
    }
  }
  merged.end = now + length;
  if (first == last) {
    spans_.insert(first, merged);
  } else {
    *first = merged;
    spans_.erase(first + 1, last);
  }
  end_ = std::max(end_, spans_.back().end);
}

}  // namespace stave::bounds
