#include "scheduler/memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/code.h"
#include "compiler/expansion.h"
#include "core/lanes.h"

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
struct KindSizes {
  explicit KindSizes(const IndexedValues& values, const Scale& scale) : stride(values.stride) {
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

/// What a device holds changes by `size` at the start, or the end, of an entry.
struct Change {
  std::uint32_t position = 0;
  bool at_end = false;
  Int128 size = 0;
};

/// By time; at one time what ends gives back before what starts takes, and an entry of no length does both in turn.
void sort(std::vector<Change>& changes, const Timeline& timeline) {
  const auto key = [&](const Change& change) {
    const Ticks start = timeline.start[change.position];
    const Ticks end = timeline.end[change.position];
    const int phase = start == end ? 1 : change.at_end ? 0 : 2;
    return std::tuple(change.at_end ? end : start, phase, change.position, change.at_end);
  };
  std::sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) { return key(a) < key(b); });
}

/// The weights that each device holds: those of its stages, of every version that is still needed, and those received.
class WeightSizes {
 public:
  WeightSizes(const Schedule& schedule, const Program& program, const Scale& scale) : program_(program) {
    const auto& sizes = schedule.costs.weights;
    const auto& state = schedule.costs.state;
    const auto some = [](Rational size) { return size != Rational(0); };
    if (std::none_of(sizes.begin(), sizes.end(), some) && std::none_of(state.begin(), state.end(), some)) return;
    for (Rational size : sizes) sizes_.push_back(scale(size));
    for (Rational size : state) state_.push_back(scale(size));
    state_.resize(sizes_.size(), 0);
  }

  /// What is held all the time; what comes and goes is added to `changes`.
  Int128 of_device(std::uint32_t d, std::vector<Change>& changes) const {
    if (sizes_.empty()) return 0;
    const Table& table = program_.table;
    std::vector<bool> resident(sizes_.size(), false);
    // First and last reader of every version of a stage, and the entry that makes it.
    struct Version {
      std::uint32_t first = OpId::kNone;
      std::uint32_t last = OpId::kNone;
      std::uint32_t made = OpId::kNone;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Version> versions;
    std::vector<std::uint32_t> newest(sizes_.size(), 0);
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const std::uint32_t stage = table.ops.stage(table.entries[position]);
      if (stage >= sizes_.size()) continue;
      if (program_.reads_version.empty()) {
        resident[stage] = true;
        continue;
      }
      const std::uint32_t read = program_.reads_version[position];
      const std::uint32_t made = program_.makes_version[position];
      if (made != UINT32_MAX) {
        versions[{stage, made}].made = position;
        newest[stage] = made;
        resident[stage] = true;
      }
      if (read == UINT32_MAX) continue;
      Version& version = versions[{stage, read}];
      if (version.first == OpId::kNone) version.first = position;
      version.last = position;
    }
    Int128 result = 0;
    for (const auto& [key, version] : versions) {
      const auto& [stage, number] = key;
      // Made elsewhere: there from its first reader to its last.
      const bool received = version.made == OpId::kNone && number > 0;
      const auto next = versions.find({stage, number + 1});
      const bool replaced = next != versions.end() && next->second.made != OpId::kNone;
      if (number == 0 && !received) resident[stage] = true;
      if (received) {
        changes.push_back({version.first, false, sizes_[stage]});
        changes.push_back({version.last, true, -sizes_[stage]});
      } else if (replaced && version.last != OpId::kNone && version.last > next->second.made) {
        // Read after the next was made beside it.
        changes.push_back({next->second.made, false, sizes_[stage]});
        changes.push_back({version.last, true, -sizes_[stage]});
      }
    }
    for (std::size_t stage = 0; stage < resident.size(); ++stage)
      if (resident[stage]) result += sizes_[stage] + state_[stage];
    return result;
  }

 private:
  const Program& program_;
  std::vector<Int128> sizes_;
  /// Gradients and the optimizer's state.
  std::vector<Int128> state_;
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

/// What each device holds, as changes in time.
class Held {
 public:
  Held(const Schedule& schedule, const Program& program, const Timeline& timeline)
      : program_(program), timeline_(timeline), lanes_(program.table) {
    const CostSet& costs = schedule.costs;
    for (const auto* kinds : {&costs.memory_taken, &costs.memory_given})
      for (const IndexedValues& kind : *kinds)
        for (Rational value : kind.values) scale_.add(value);
    for (const auto* sizes : {&costs.weights, &costs.state, &costs.message_sizes})
      for (Rational value : *sizes) scale_.add(value);
    if (!scale_.fits()) return;
    const IndexedValues none;
    for (std::uint32_t k = 0; k < program.table.ops.kinds().size(); ++k) {
      taken_.emplace_back(k < costs.memory_taken.size() ? costs.memory_taken[KindId(k)] : none, scale_);
      given_.emplace_back(k < costs.memory_given.size() ? costs.memory_given[KindId(k)] : none, scale_);
    }
    for (Rational size : costs.message_sizes) message_sizes_.push_back(scale_(size));
    weights_.emplace(schedule, program, scale_);
  }

  bool fits() const { return scale_.fits(); }
  std::optional<Rational> size(Int128 held) const { return Rational::make(held, scale_.parts()); }

  /// Calls `visit(held, change)` for what device d holds at first, with none, and after each change, in the order of time.
  template <class Visit>
  void of_device(std::uint32_t d, Visit&& visit) const {
    const Table& table = program_.table;
    std::vector<Change> changes;
    Int128 held = weights_->of_device(d, changes) + slots_of(d);
    visit(held, static_cast<const Change*>(nullptr));
    const auto change = [&](const Change& each) {
      held += each.size;
      visit(held, &each);
    };
    // One op after the other: nothing need be sorted, and of millions nothing kept.
    const bool in_order = lanes_.plain() && table.blocks.size() == 0 && changes.empty();
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      const std::uint32_t kind = table.ops.kind_of(op).value;
      const Change start{position, false, taken_[kind].of(table.ops, op)};
      const Change end{position, true, -given_[kind].of(table.ops, op)};
      if (in_order) {
        change(start);
        change(end);
        continue;
      }
      changes.push_back(start);
      changes.push_back(end);
    }
    sort(changes, timeline_);
    for (const Change& each : changes) change(each);
  }

 private:
  /// The slots of messages are there all the time.
  Int128 slots_of(std::uint32_t d) const {
    Int128 result = 0;
    const std::vector<std::uint32_t>& slots = program_.slots[DeviceId(d)].by_payload;
    for (std::size_t p = 0; p < std::min(slots.size(), message_sizes_.size()); ++p) result += slots[p] * message_sizes_[p];
    return result;
  }

  const Program& program_;
  const Timeline& timeline_;
  const Lanes lanes_;
  Scale scale_;
  /// By kind.
  std::vector<KindSizes> taken_;
  std::vector<KindSizes> given_;
  /// By payload.
  std::vector<Int128> message_sizes_;
  std::optional<WeightSizes> weights_;
};

}  // namespace

std::optional<IdVector<DeviceId, PeakMemory>> peak_memory(const Schedule& schedule, const Program& program,
                                                          const Timeline& timeline, Diagnostics* sink) {
  const Held held(schedule, program, timeline);
  if (!held.fits())
    return refuse(schedule, sink, "the sizes of memory have no common denominator that fits into 64 bits");
  IdVector<DeviceId, PeakMemory> result;
  for (std::uint32_t d = 0; d < program.table.devices(); ++d) {
    PeakMemory mine;
    Int128 peak = 0;
    held.of_device(d, [&](Int128 now, const Change* change) {
      if (change != nullptr && now <= peak) return;
      peak = now;
      if (change != nullptr) mine.position = change->position;
    });
    const std::optional<Rational> size = held.size(peak);
    if (!size)
      return refuse(schedule, sink, "the peak memory of device " + std::to_string(d) + " does not fit into 64 bits");
    mine.size = *size;
    result.push_back(mine);
  }
  return result;
}

std::vector<MemoryStep> memory_over_time(const Schedule& schedule, const Program& program, const Timeline& timeline,
                                         DeviceId device) {
  const Held held(schedule, program, timeline);
  std::vector<MemoryStep> result;
  held.of_device(device.value, [&](Int128 now, const Change* change) {
    const Ticks time = change == nullptr ? 0 : (change->at_end ? timeline.end : timeline.start)[change->position];
    const double size = held.size(now).value_or(Rational(0)).to_double();
    if (result.empty() || result.back().time != time)
      result.push_back({time, size});
    else
      result.back().held = size;
  });
  return result;
}

}  // namespace stave
