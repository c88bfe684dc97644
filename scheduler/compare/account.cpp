#include "scheduler/compare/account.h"

#include <algorithm>
#include <cmath>

#include "scheduler/critical_path.h"

namespace stave {

Account account_of(const Program& program, const Timeline& timeline, const Costs& costs, const Report& report,
                   const Turns& turns) {
  const auto units = [&](Ticks ticks) {
    return static_cast<double>(ticks) / static_cast<double>(report.ticks_per_unit);
  };
  Account result;
  result.makespan = units(report.makespan);
  const double devices = static_cast<double>(report.devices.size());
  for (const DeviceReport& device : report.devices) {
    result.busy += units(device.busy) / devices;
    for (std::size_t cause = 0; cause < kIdleCauses.size(); ++cause)
      result.idle[cause] += units(device.idle[cause]) / devices;
  }
  const CriticalPath path = critical_path(program, timeline, costs, turns);
  for (const StageBlame& stage : path.stages) result.path_op_time += units(stage.time);
  for (const LinkBlame& link : path.links) {
    const std::uint32_t a = std::min(link.source.value, link.target.value);
    const std::uint32_t b = std::max(link.source.value, link.target.value);
    auto crossed = std::find_if(result.crossed.begin(), result.crossed.end(),
                                [&](const Crossed& each) { return each.a == a && each.b == b; });
    if (crossed == result.crossed.end()) crossed = result.crossed.insert(crossed, Crossed{a, b, 0, 0});
    crossed->count += link.count;
    crossed->time += units(link.time);
    result.path_messages += link.count;
    result.path_message_time += units(link.time);
  }
  std::sort(result.crossed.begin(), result.crossed.end(),
            [](const Crossed& x, const Crossed& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; });
  return result;
}

std::vector<Reason> reasons(const Account& shorter, const Account& longer) {
  std::vector<Reason> result;
  result.push_back({std::nullopt, longer.busy - shorter.busy});
  for (std::size_t cause = 0; cause < kIdleCauses.size(); ++cause)
    result.push_back({static_cast<IdleCause>(cause), longer.idle[cause] - shorter.idle[cause]});
  std::stable_sort(result.begin(), result.end(),
                   [](const Reason& a, const Reason& b) { return std::abs(a.more) > std::abs(b.more); });
  const double least = std::max(std::abs(result[0].more) / 100, 1e-9);
  std::erase_if(result, [&](const Reason& each) { return std::abs(each.more) < least; });
  return result;
}

std::optional<SlowLink> slow_link(const Account& shorter, const Account& longer) {
  std::optional<SlowLink> result;
  double most = 0;
  for (const Crossed& link : longer.crossed) {
    const auto same = std::find_if(shorter.crossed.begin(), shorter.crossed.end(),
                                   [&](const Crossed& each) { return each.a == link.a && each.b == link.b; });
    const Crossed other = same == shorter.crossed.end() ? Crossed{link.a, link.b, 0, 0} : *same;
    if (link.time - other.time <= most) continue;
    most = link.time - other.time;
    result = SlowLink{other, link};
  }
  return result;
}

}  // namespace stave
