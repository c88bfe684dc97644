// Schedules and tables for tests, made by hand: the operations, needs, costs and memory of
// schedules/std/training.sched, stage s on device s mod P, without the language.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule.h"
#include "core/table.h"

namespace stave::test {

inline OpKind training_kind(Operation operation, std::uint32_t stages, std::uint32_t microbatches) {
  OpKind kind;
  kind.name = std::string(info(operation).letter);
  kind.operation = operation;
  kind.indices = {
      {"s", IndexRole::Stage, stages}, {"m", IndexRole::Microbatch, microbatches}, {"q", IndexRole::Slice, 1}};
  return kind;
}

inline Rational rational(std::int64_t numerator, std::int64_t denominator = 1) {
  return *Rational::make(numerator, denominator);
}

struct TrainingCosts {
  Rational f = 1, i = 1, w = 1, message = 0;
};

inline void set_costs(Schedule& schedule, TrainingCosts costs) {
  const auto one = [](Rational value) { return IndexedValues{{value}, {}}; };
  const auto all = [&](Rational f, Rational i, Rational w, Rational b) {
    IdVector<KindId, IndexedValues> result;
    for (Rational value : {f, i, w, b}) result.push_back(one(value));
    return result;
  };
  schedule.costs.duration = all(costs.f, costs.i, costs.w, *add(costs.i, costs.w));
  schedule.costs.message.assign(schedule.payloads.size(), costs.message);
  schedule.costs.memory_taken = all(1, 0, 0, 0);
  schedule.costs.memory_given = all(0, rational(1, 2), rational(1, 2), 1);
}

/// A cost of its own from every device to every other, for one payload.
inline void set_link_costs(Schedule& schedule, std::size_t payload, const std::function<std::uint32_t()>& cost) {
  std::vector<Rational> links(std::size_t(schedule.devices) * schedule.devices);
  for (Rational& each : links) each = cost();
  schedule.costs.message.set_links(payload, schedule.devices,
                                   std::make_shared<const LinkCosts<Rational>>(std::move(links)));
}

/// A cost of its own from every device to every other, for each of three sizes, which microbatches and slices have in turn.
template <class T>
MessageCosts<T> sized_message_costs(const Schedule& schedule, const std::function<std::uint32_t()>& cost) {
  MessageSizes sizes;
  sizes.count = 3;
  sizes.slices = schedule.slices;
  for (std::uint32_t i = 0; i < schedule.microbatches * schedule.slices; ++i) sizes.of.push_back(1 + i % 2);
  MessageCosts<T> result;
  result.assign(schedule.payloads.size(), T(0));
  result.set_sizes(std::make_shared<const MessageSizes>(std::move(sizes)));
  for (std::size_t payload = 1; payload < schedule.payloads.size(); ++payload) {
    LinkCosts<T> links;
    links.kinds = std::size_t(schedule.devices) * schedule.devices;
    for (std::size_t i = 0; i < 3 * links.kinds; ++i) links.values.push_back(T(cost()));
    result.set_links(payload, schedule.devices, std::make_shared<const LinkCosts<T>>(std::move(links)));
  }
  return result;
}

/// P devices, V stages on each, M microbatches; kinds F, I, W, B in this order, payloads "", activation, gradient.
inline Schedule training(std::uint32_t devices, std::uint32_t stages_per_device, std::uint32_t microbatches,
                         TrainingCosts costs = {}) {
  Schedule schedule;
  schedule.name = "training";
  schedule.devices = devices;
  schedule.stages = devices * stages_per_device;
  schedule.microbatches = microbatches;
  const std::uint32_t stages = schedule.stages;
  for (Operation operation : {Operation::Forward, Operation::InputGradient, Operation::WeightGradient}) {
    const bool added = schedule.ops.add(training_kind(operation, stages, microbatches));
    STAVE_CHECK(added, "test schedule too large");
  }
  OpKind backward = training_kind(Operation::Backward, stages, microbatches);
  backward.parts = {KindId(1), KindId(2)};
  const bool added = schedule.ops.add(std::move(backward));
  STAVE_CHECK(added, "test schedule too large");

  schedule.payloads = {"", "activation", "gradient"};
  const std::uint32_t count = stages * microbatches;
  const auto forward = [&](std::uint32_t s, std::uint32_t m) { return OpId(s * microbatches + m); };
  const auto input = [&](std::uint32_t s, std::uint32_t m) { return OpId(count + s * microbatches + m); };
  Rows<Dependency>& needs = schedule.needs;
  for (std::uint32_t s = 0; s < stages; ++s)
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      if (s > 0) needs.items.push_back({forward(s - 1, m), 1});
      needs.end_row();
    }
  for (std::uint32_t s = 0; s < stages; ++s)
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      if (s + 1 < stages) needs.items.push_back({input(s + 1, m), 2});
      needs.items.push_back({forward(s, m), 0});
      needs.end_row();
    }
  for (std::uint32_t s = 0; s < stages; ++s)
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      needs.items.push_back({input(s, m), 0});
      needs.end_row();
    }
  for (std::uint32_t i = 0; i < count; ++i) needs.end_row();
  schedule.device_of.resize(schedule.ops.size());
  for (std::uint32_t op = 0; op < schedule.ops.size(); ++op)
    schedule.device_of[op] = static_cast<std::uint16_t>(op % count / microbatches % devices);
  schedule.orders.resize(devices);
  schedule.costs.weights.assign(stages, Rational(0));
  set_costs(schedule, costs);
  return schedule;
}

inline OpId op(const Schedule& schedule, char letter, std::uint32_t stage, std::uint32_t microbatch) {
  const std::uint32_t index[] = {stage, microbatch, 0};
  return schedule.ops.id(schedule.ops.find(std::string(1, letter)), index);
}

inline Table table_of(const Schedule& schedule, const std::vector<std::vector<OpId>>& rows) {
  Table result;
  result.ops = schedule.ops;
  for (const std::vector<OpId>& row : rows) {
    result.entries.insert(result.entries.end(), row.begin(), row.end());
    result.first.push_back(result.size());
  }
  return result;
}

/// Rows of cells such as "F0 B0" or, with several stages on a device, "2F0".
inline Table table(const Schedule& schedule, const std::vector<std::string>& rows) {
  std::vector<std::vector<OpId>> ops;
  for (std::uint32_t d = 0; d < rows.size(); ++d) {
    std::vector<OpId>& row = ops.emplace_back();
    std::size_t at = 0;
    const std::string& text = rows[d];
    const auto number = [&](std::uint32_t otherwise) {
      if (at == text.size() || text[at] < '0' || text[at] > '9') return otherwise;
      std::uint32_t value = 0;
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) value = value * 10 + (text[at] - '0');
      return value;
    };
    while (at < text.size()) {
      if (text[at] == ' ') {
        ++at;
        continue;
      }
      const std::uint32_t stage = number(d);
      const char letter = text[at++];
      row.push_back(op(schedule, letter, stage, number(0)));
    }
  }
  return table_of(schedule, ops);
}

/// All forwards, then all backwards in the same order. One stage a device.
inline Table gpipe(const Schedule& schedule) {
  std::vector<std::vector<OpId>> rows(schedule.devices);
  for (std::uint32_t d = 0; d < schedule.devices; ++d)
    for (char letter : {'F', 'B'})
      for (std::uint32_t m = 0; m < schedule.microbatches; ++m) rows[d].push_back(op(schedule, letter, d, m));
  return table_of(schedule, rows);
}

/// Narayanan et al., SC 2021. One stage a device.
inline Table one_f_one_b(const Schedule& schedule) {
  const std::uint32_t microbatches = schedule.microbatches;
  std::vector<std::vector<OpId>> rows(schedule.devices);
  for (std::uint32_t d = 0; d < schedule.devices; ++d) {
    const std::uint32_t warmup = std::min(microbatches, schedule.devices - 1 - d);
    std::uint32_t f = 0;
    std::uint32_t b = 0;
    const auto forward = [&] { rows[d].push_back(op(schedule, 'F', d, f++)); };
    const auto backward = [&] { rows[d].push_back(op(schedule, 'B', d, b++)); };
    for (std::uint32_t k = 0; k < warmup; ++k) forward();
    for (std::uint32_t k = warmup; k < microbatches; ++k) {
      forward();
      backward();
    }
    for (std::uint32_t k = 0; k < warmup; ++k) backward();
  }
  return table_of(schedule, rows);
}

/// A random order that can finish: ops are taken in a random topological order. With `split`, about half of the
/// backwards are written as I and W.
inline Table random_table(const Schedule& schedule, std::uint64_t seed, bool split = true) {
  std::mt19937_64 random(seed);
  const std::uint32_t stages = schedule.stages;
  const std::uint32_t microbatches = schedule.microbatches;
  enum Step { Forward, Backward };
  struct Chain {
    std::uint32_t microbatch;
    std::uint32_t stage = 0;
    Step step = Forward;
  };
  std::vector<std::vector<OpId>> rows(schedule.devices);
  std::vector<Chain> chains;
  std::vector<OpId> weights;
  for (std::uint32_t m = 0; m < microbatches; ++m) chains.push_back({m});
  const auto put = [&](OpId id) { rows[schedule.device_of[id.value]].push_back(id); };
  while (!chains.empty() || !weights.empty()) {
    const std::size_t pick = random() % (chains.size() + weights.size());
    if (pick >= chains.size()) {
      const std::size_t which = pick - chains.size();
      put(weights[which]);
      weights.erase(weights.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    Chain& chain = chains[pick];
    if (chain.step == Forward) {
      put(op(schedule, 'F', chain.stage, chain.microbatch));
      if (chain.stage + 1 < stages)
        ++chain.stage;
      else
        chain.step = Backward;
      continue;
    }
    if (split && random() % 2 == 0) {
      put(op(schedule, 'I', chain.stage, chain.microbatch));
      weights.push_back(op(schedule, 'W', chain.stage, chain.microbatch));
    } else {
      put(op(schedule, 'B', chain.stage, chain.microbatch));
    }
    if (chain.stage-- == 0) chains.erase(chains.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return table_of(schedule, rows);
}

}  // namespace stave::test
