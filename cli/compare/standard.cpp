#include "cli/compare/standard.h"

#include <fmt/format.h>

namespace stave {
namespace {

/// Between these times the forwards of the standard, the forwards of a microbatch are taken for the same work.
constexpr double kLeastWork = 0.9;
constexpr double kMostWork = 1.5;

}  // namespace

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

std::string other_work(const Size& size, const Standard& standard, bool priced) {
  if (!size.work) return "trains nothing: it has no `F`";
  if (size.devices != standard.devices)
    return fmt::format("runs on {} device{}, not {}", size.devices, size.devices == 1 ? "" : "s", standard.devices);
  if (size.microbatches != standard.microbatches)
    return fmt::format("runs {} microbatch{}, not {}", size.microbatches, size.microbatches == 1 ? "" : "es",
                       standard.microbatches);
  // Costs that are not scaled tell whether its microbatches are the same; one may skip stages, or repeat a part.
  const bool skips = size.work->forwards < standard.work.forwards;
  if (!priced || skips || standard.work.time == Rational(0)) return "";
  const double share = size.work->time.to_double() / standard.work.time.to_double();
  if (share > kLeastWork && share < kMostWork) return "";
  return fmt::format("its microbatches are others: their forwards take {:.3g} times as long", share);
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
