#include "scheduler/memory.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "compiler/code.h"
#include "compiler/expansion.h"

namespace stave {

namespace {

/// A size counted in parts of one common denominator.
class Scale {
 public:
  void add(Rational value) {
    const Int128 common = Int128(parts_ / std::gcd(parts_, value.denominator())) * value.denominator();
    fits_ = fits_ && common <= INT64_MAX;
    if (fits_) parts_ = static_cast<std::int64_t>(common);
  }
  bool fits() const { return fits_; }
  std::int64_t parts() const { return parts_; }
  Int128 operator()(Rational value) const { return Int128(value.numerator()) * (parts_ / value.denominator()); }

 private:
  std::int64_t parts_ = 1;
  bool fits_ = true;
};

/// The sizes of a kind's ops, scaled.
struct OpSizes {
  explicit OpSizes(const IndexedValues& values, const Scale& scale) : stride(values.stride) {
    for (Rational value : values.values) scaled.push_back(scale(value));
    if (scaled.empty()) scaled.push_back(0);
  }
  Int128 of(const OpSet& ops, OpId op) const {
    if (scaled.size() == 1) return scaled[0];
    const OpName name = ops.name(op);
    std::size_t at = 0;
    for (std::size_t i = 0; i < kMaxIndices; ++i) at += std::size_t(name.index[i]) * stride[i];
    return scaled[at];
  }
  std::vector<Int128> scaled;
  std::array<std::uint32_t, kMaxIndices> stride;
};

/// Where the file says what an op takes; none if it says nothing.
Span last_memory_line(const Schedule& schedule) {
  if (schedule.expansion == nullptr || schedule.expansion->code->memory.empty()) return {};
  return schedule.expansion->code->memory.back().target_span;
}

std::nullopt_t refuse(const Schedule& schedule, Diagnostics* sink, std::string message) {
  if (sink == nullptr) return std::nullopt;
  Diagnostic diagnostic;
  diagnostic.kind = "overflow";
  diagnostic.message = std::move(message);
  diagnostic.primary = {last_memory_line(schedule), "with these sizes"};
  diagnostic.notes = {"sizes are exact: sums of 64-bit fractions"};
  sink->add(std::move(diagnostic));
  return std::nullopt;
}

}  // namespace

std::optional<IdVector<DeviceId, PeakMemory>> peak_memory(const Schedule& schedule, const Table& table,
                                                          Diagnostics* sink) {
  const CostSet& costs = schedule.costs;
  Scale scale;
  for (const auto* kinds : {&costs.memory_taken, &costs.memory_given})
    for (const IndexedValues& kind : *kinds)
      for (Rational value : kind.values) scale.add(value);
  for (Rational value : costs.weights) scale.add(value);
  if (!scale.fits())
    return refuse(schedule, sink, "the sizes of memory have no common denominator that fits into 64 bits");
  std::vector<OpSizes> taken;
  std::vector<OpSizes> given;
  const IndexedValues none;
  for (std::uint32_t k = 0; k < table.ops.kinds().size(); ++k) {
    taken.emplace_back(k < costs.memory_taken.size() ? costs.memory_taken[KindId(k)] : none, scale);
    given.emplace_back(k < costs.memory_given.size() ? costs.memory_given[KindId(k)] : none, scale);
  }

  IdVector<DeviceId, PeakMemory> result;
  std::vector<std::uint32_t> weighed_for(costs.weights.size(), UINT32_MAX);
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    Int128 weights = 0;
    for (OpId op : table.on(DeviceId(d))) {
      const std::uint32_t stage = costs.weights.empty() ? OpId::kNone : table.ops.stage(op);
      if (stage >= weighed_for.size() || weighed_for[stage] == d) continue;
      weighed_for[stage] = d;
      weights += scale(costs.weights[stage]);
    }
    Int128 held = weights;
    Int128 peak = weights;
    PeakMemory mine;
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      const std::uint32_t kind = table.ops.kind_of(op).value;
      held += taken[kind].of(table.ops, op);
      if (held > peak) {
        peak = held;
        mine.position = position;
      }
      held -= given[kind].of(table.ops, op);
    }
    const std::optional<Rational> size = Rational::make(peak, scale.parts());
    if (!size)
      return refuse(schedule, sink, "the peak memory of device " + std::to_string(d) + " does not fit into 64 bits");
    mine.size = *size;
    result.push_back(mine);
  }
  return result;
}

}  // namespace stave
