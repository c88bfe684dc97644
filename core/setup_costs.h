// SetupCosts: how long a device takes to change from one op to the next, by what the two are and, where that matters,
// by their stages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/op_set.h"

namespace stave {

/// T is Rational or Ticks.
template <class T>
struct SetupCosts {
  struct Rule {
    KindId before;
    KindId after;
    /// 0: one value for all stages. Else values[stage after * stages + stage before].
    std::uint32_t stages = 0;
    std::vector<T> values;
  };
  /// One for two kinds.
  std::vector<Rule> rules;

  bool empty() const { return rules.empty(); }
  const Rule* find(KindId before, KindId after) const {
    for (const Rule& rule : rules)
      if (rule.before == before && rule.after == after) return &rule;
    return nullptr;
  }
  /// Between the end of `before` and the start of `after`, which is next on its lane.
  T of(const OpSet& ops, OpId before, OpId after) const {
    if (rules.empty()) return T(0);
    const Rule* const rule = find(ops.kind_of(before), ops.kind_of(after));
    if (rule == nullptr) return T(0);
    if (rule->stages == 0) return rule->values[0];
    return rule->values[std::size_t(ops.stage(after)) * rule->stages + ops.stage(before)];
  }
  /// The same with every value as `f` gives it.
  template <class To, class F>
  SetupCosts<To> map(const F& f) const {
    SetupCosts<To> result;
    for (const Rule& rule : rules) {
      typename SetupCosts<To>::Rule to{rule.before, rule.after, rule.stages, {}};
      for (const T& value : rule.values) to.values.push_back(f(value));
      result.rules.push_back(std::move(to));
    }
    return result;
  }
};

}  // namespace stave
