// Random tables, legal or not, of small random schedules.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/ticks.h"
#include "tests/property/lowered.h"

namespace stave::test {

class RandomTables {
 public:
  explicit RandomTables(unsigned seed) : random_(seed) {}

  std::uint32_t upto(std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random_);
  }

  Schedule schedule() {
    const std::uint32_t devices = upto(1, 4), chunks = upto(1, 2), microbatches = upto(1, 5);
    const std::string v = "s if s < " + std::to_string(devices) + " else " + std::to_string(2 * devices - 1) + " - s";
    const std::string place = upto(0, 1) == 1 ? "s mod " + std::to_string(devices) : v;
    return test::schedule_of("schedule random\ndevices " + std::to_string(devices) + "\nstages " +
                             std::to_string(devices * chunks) + "\nmicrobatches " + std::to_string(microbatches) +
                             "\nplace stage s on device (" + place + ")\non device d { any { F(*, *) B(*, *) } }\ncost F = " +
                             std::to_string(upto(1, 5)) + ", message = " + std::to_string(upto(0, 3)) + "\n");
  }

  /// Ops taken at random from those that are ready; backwards whole, or split with the halves apart.
  Table legal(const Schedule& schedule) {
    const OpSet& ops = schedule.ops;
    const KindId f = ops.find(Operation::Forward), i = ops.find(Operation::InputGradient),
                 w = ops.find(Operation::WeightGradient), b = ops.find(Operation::Backward);
    std::vector<OpId> left;
    for (std::uint32_t n = 0; n < ops.kinds()[f].count; ++n) {
      left.push_back(OpId(ops.kinds()[f].first + n));
      if (upto(0, 1) == 1) {
        left.push_back(OpId(ops.kinds()[b].first + n));
      } else {
        left.push_back(OpId(ops.kinds()[i].first + n));
        left.push_back(OpId(ops.kinds()[w].first + n));
      }
    }
    std::vector<bool> done(ops.size(), false);
    std::vector<std::vector<OpId>> rows(schedule.devices);
    while (!left.empty()) {
      std::shuffle(left.begin(), left.end(), random_);
      const auto next = std::find_if(left.begin(), left.end(), [&](OpId op) {
        const std::vector<OpId> parts = ops.parts(op);
        for (OpId part : parts)
          for (const Dependency& need : schedule.needs[part.value])
            if (!done[need.op.value] && std::find(parts.begin(), parts.end(), need.op) == parts.end()) return false;
        return true;
      });
      REQUIRE(next != left.end());
      for (OpId part : ops.parts(*next)) done[part.value] = true;
      rows[schedule.device_of[next->value]].push_back(*next);
      left.erase(next);
    }
    return table(schedule, rows);
  }

  /// A legal table with a few ops of one device swapped: legal perhaps, perhaps not.
  Table disturbed(const Schedule& schedule) {
    Table result = legal(schedule);
    for (std::uint32_t swaps = upto(1, 3); swaps > 0; --swaps) {
      const std::uint32_t d = upto(0, result.devices() - 1);
      std::swap(result.entries[upto(result.first[d], result.first[d + 1] - 1)],
                result.entries[upto(result.first[d], result.first[d + 1] - 1)]);
    }
    return result;
  }

  std::vector<Ticks> delays(const Program& program, Ticks most) {
    std::vector<Ticks> costs(program.nodes(), 0);
    for (std::uint32_t n = program.table.size(); n < program.nodes(); ++n)
      costs[n] = static_cast<Ticks>(upto(0, static_cast<std::uint32_t>(most)));
    return costs;
  }

 private:
  static Table table(const Schedule& schedule, const std::vector<std::vector<OpId>>& rows) {
    Table result;
    result.ops = schedule.ops;
    for (const std::vector<OpId>& row : rows) {
      result.entries.insert(result.entries.end(), row.begin(), row.end());
      result.first.push_back(result.size());
    }
    return result;
  }

  std::mt19937 random_;
};

}  // namespace stave::test
