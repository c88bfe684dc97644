#include "scheduler/held_back.h"

#include <algorithm>
#include <unordered_map>

namespace stave {

namespace {

/// Lists of a device beyond which the next op of each is not looked at.
constexpr std::size_t kMostLists = 16;

}  // namespace

void HeldBack::enter(DeviceId device) {
  device_ = device;
  changes_.clear();
  waiting_.clear();
  next_change_ = 0;
  held_ = {};
  if (!limited(device)) return;
  find_changes();
  find_waiting();
}

Ticks HeldBack::since(Ticks from, std::uint32_t next) {
  if (waiting_.empty()) return kNever;
  for (; next_change_ < changes_.size() && changes_[next_change_].time <= from; ++next_change_)
    for (std::size_t i = 0; i < held_.size(); ++i) held_[i] += changes_[next_change_].size[i];
  const Waiting& first = waiting_[next - program_.table.first[device_.value]];
  if (first.ready == kNever) return kNever;
  const std::array<std::int64_t, 2> size = taken(first.position);
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::optional<std::int64_t>& most = sizes_[i].most[device_.value];
    if (most && size[i] > 0 && held_[i] + size[i] > *most) return first.ready;
  }
  return kNever;
}

std::array<std::int64_t, 2> HeldBack::taken(std::uint32_t position) const {
  const Table& table = program_.table;
  const OpId op = table.entries[position];
  return {sizes_[0].taken_by(table.ops, op), sizes_[1].taken_by(table.ops, op)};
}

void HeldBack::find_changes() {
  const Table& table = program_.table;
  for (std::uint32_t at = table.first[device_.value]; at < table.first[device_.value + 1]; ++at) {
    const OpId op = table.entries[at];
    changes_.push_back({times_.start[at], true, taken(at)});
    changes_.push_back(
        {times_.end[at], false, {-sizes_[0].given_by(table.ops, op), -sizes_[1].given_by(table.ops, op)}});
  }
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
}

Ticks HeldBack::ready(std::uint32_t position) const {
  Ticks result = 0;
  for (NodeId before : program_.waits[position]) result = std::max(result, times_.end[before.value]);
  return result;
}

void HeldBack::find_waiting() {
  const Table& table = program_.table;
  const std::vector<OrderBlock>& blocks = schedule_.orders[device_].blocks;
  // By op: its list, or none for those that are always offered.
  std::unordered_map<std::uint32_t, std::size_t> list_of;
  std::size_t lists = 0;
  for (const OrderBlock& block : blocks) {
    if (block.kind != OrderKind::List) continue;
    for (OpId op : block.ops) list_of[op.value] = lists;
    ++lists;
  }
  std::vector<Waiting> next(lists);
  Waiting offered;
  const std::uint32_t first = table.first[device_.value];
  waiting_.resize(table.first[device_.value + 1] - first);
  for (std::uint32_t at = table.first[device_.value + 1]; at-- > first;) {
    const std::array<std::int64_t, 2> size = taken(at);
    const bool takes = size[0] > 0 || size[1] > 0;
    const Waiting mine = {takes && lanes_.computes(at) ? ready(at) : kNever, at};
    const auto list = list_of.find(table.entries[at].value);
    if (list != list_of.end())
      next[list->second] = mine;
    else if (mine.ready <= offered.ready)
      offered = mine;
    Waiting& result = waiting_[at - first] = offered;
    if (lists > kMostLists) continue;
    for (const Waiting& each : next)
      if (each.ready < result.ready) result = each;
  }
}

}  // namespace stave
