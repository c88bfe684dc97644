#include "cli/compare/standard.h"

namespace stave {

std::optional<Standard> find_standard(const std::vector<Competitor>& competitors, const std::vector<Axis>& axes,
                                      const std::vector<std::size_t>& at) {
  std::optional<Standard> first;
  for (std::size_t i = 0; i < competitors.size(); ++i) {
    Built built;
    const Result<Outcome> outcome = expand_into(built, competitors[i].loaded, competitors[i].arguments_at(axes, at));
    if (!outcome || outcome.value() != Outcome::Done) continue;
    const Schedule& schedule = *built.schedule;
    const std::optional<Work> work = work_of(schedule);
    if (!work) continue;
    const bool plain = schedule.stages == schedule.devices && schedule.slices == 1;
    if (plain || !first) first = Standard{schedule.devices, schedule.microbatches, *work, i};
    if (plain) break;
  }
  return first;
}

Share share_of(const std::optional<Work>& work, const std::optional<Work>& standard, bool priced) {
  Share share;
  if (!standard || !work || work->forwards < standard->forwards) return share;
  const std::optional<Rational> part = divide(standard->forwards, work->forwards);
  if (!part) return share;
  share.activations = *part;
  if (priced) return share;
  share.size = *part;
  const bool takes_time = work->time > Rational(0) && standard->time > Rational(0);
  share.time = takes_time ? divide(standard->time, work->time).value_or(*part) : *part;
  return share;
}

}  // namespace stave
