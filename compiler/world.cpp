#include "compiler/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace stave {

namespace {

using Index = std::array<std::uint32_t, kMaxIndices>;

/// The number of the index of this role, or how many indices there are.
std::size_t index_of(const OpKind& kind, IndexRole role) {
  return static_cast<std::size_t>(std::find_if(kind.indices.begin(), kind.indices.end(),
                                               [&](const OpIndex& index) { return index.role == role; }) -
                                  kind.indices.begin());
}

/// Whether the microbatch of these indices does not have their slice.
bool slice_outside(Evaluator& evaluator, const OpKind& kind, const Index& at) {
  const std::size_t slice = index_of(kind, IndexRole::Slice);
  const std::size_t microbatch = index_of(kind, IndexRole::Microbatch);
  return slice < kind.indices.size() && microbatch < kind.indices.size() &&
         at[slice] >= evaluator.slices_of(at[microbatch]);
}

/// The lists of one op's indices, which may depend on one another, and its numbers.
class Boxes {
 public:
  Boxes(Evaluator& evaluator, World& world)
      : evaluator_(evaluator), world_(world), slices_differ_(evaluator.slices_differ()) {}

  void add(std::uint32_t number) {
    const OpCode& op = evaluator_.code().ops[number];
    op_ = &op;
    extents_ = {};
    partial_ = op.condition.valid() || has_route(op) || has_missing_slices(op);
    ragged_ = false;
    for (const IndexCode& index : op.indices) ragged_ = ragged_ || index.ragged;
    if (!ragged_) {
      for (std::size_t i = 0; i < op.indices.size(); ++i) extents_[i] = extent(i, evaluator_.list(op.indices[i].list));
    } else {
      partial_ = true;
      each(0, [&] {
        for (std::size_t i = 0; i < op.indices.size(); ++i) extents_[i] = std::max(extents_[i], at_[i] + 1);
      });
    }
    OpKind kind;
    kind.name = op.name;
    kind.operation = operation(op);
    kind.optional = op.optional;
    kind.stream = op.stream;
    for (std::uint32_t part : op.parts) kind.parts.push_back(KindId(part));
    for (std::size_t i = 0; i < op.indices.size(); ++i)
      kind.indices.push_back({op.indices[i].name, op.indices[i].role, extents_[i]});
    if (runs_on_replicas(op)) {
      if (kind.indices.size() == kMaxIndices)
        evaluator_.fail("argument-count", op.name_span,
                        fmt::format("`{}` runs on every replica of its stage, which is an index more than the {} that "
                                    "an op can have",
                                    op.name, kMaxIndices));
      extents_[kind.indices.size()] = world_.placement.most_replicas;
      kind.indices.push_back({"replica", IndexRole::Replica, world_.placement.most_replicas});
      partial_ = true;
    }
    const std::size_t indices = kind.indices.size();
    if (!world_.ops.add(std::move(kind))) {
      // The author's word for it is the number of microbatches, if it counts.
      const std::optional<SettingCode>& setting =
          evaluator_.code().settings[static_cast<std::size_t>(SettingKind::Microbatches)];
      const bool counts = std::any_of(op.indices.begin(), op.indices.end(), [](const IndexCode& index) {
        return index.role == IndexRole::Microbatch;
      });
      Diagnostic diagnostic;
      diagnostic.kind = "too-many";
      diagnostic.message =
          fmt::format("too many ops: {} with those of `{}`; at most {} can be", too_many(), op.name, kMaxOps);
      diagnostic.primary = {counts ? evaluator_.code().spans[setting->value] : op.name_span, evaluator_.parameters()};
      std::vector<std::string_view> kinds;
      for (const OpCode& each : evaluator_.code().ops) kinds.push_back(each.name);
      diagnostic.notes.push_back(fmt::format(
          "every kind that is declared counts, run or not, for all of its indices: {}", fmt::join(kinds, ", ")));
      evaluator_.report(std::move(diagnostic));
      throw Stop{};
    }
    Index& strides = world_.strides.emplace_back();
    std::uint32_t stride = 1;
    for (std::size_t i = indices; i-- > 0;) {
      strides[i] = stride;
      stride *= std::max<std::uint32_t>(1, extents_[i]);
    }
    world_.partial.push_back(partial_);
  }

  /// Which of the ops exist, where not all do.
  void find_existing(std::uint32_t number) {
    if (!world_.partial[number]) return;
    const OpCode& op = evaluator_.code().ops[number];
    op_ = &op;
    const OpKind& kind = world_.ops.kinds()[KindId(number)];
    if (world_.exists.empty()) world_.exists.assign(world_.ops.size(), true);
    for (std::uint32_t n = 0; n < kind.count; ++n) world_.exists[kind.first + n] = false;
    each(0, [&] {
      if (has_route(op) &&
          !world_.routes.visited(at_[stage_of(op)], at_[index_of(op, IndexRole::Microbatch)]))
        return;
      if (slices_differ_ && slice_outside(evaluator_, kind, at_)) return;
      if (op.condition.valid() && !evaluator_.truth(op.condition)) return;
      std::uint32_t n = kind.first;
      for (std::size_t i = 0; i < op.indices.size(); ++i) n += at_[i] * world_.strides[number][i];
      // The replica, if there are any, is the last index.
      const std::size_t replicas = kind.extent(IndexRole::Replica) > 0 ? world_.placement.replicas[at_[stage_of(op)]].size() : 1;
      for (std::size_t r = 0; r < replicas; ++r) world_.exists[n + r] = true;
    });
  }

  void place(std::uint32_t number) {
    const OpCode& op = evaluator_.code().ops[number];
    op_ = &op;
    KindPlace& place = world_.places.emplace_back();
    if (op.device.valid()) {
      place.rule = KindPlace::Rule::Listed;
      place.listed.assign(world_.ops.kinds()[KindId(number)].count, 0);
      each(0, [&] {
        std::uint32_t n = 0;
        for (std::size_t i = 0; i < op.indices.size(); ++i) n += at_[i] * world_.strides[number][i];
        place.listed[n] = static_cast<std::uint16_t>(evaluator_.index(op.device, "device", world_.devices));
      });
      return;
    }
    for (const IndexRole role : {IndexRole::Device, IndexRole::Stage}) {
      for (std::size_t i = 0; i < op.indices.size(); ++i) {
        if (op.indices[i].role != role) continue;
        place.rule = role == IndexRole::Device ? KindPlace::Rule::Device : KindPlace::Rule::Stage;
        place.index = static_cast<std::uint32_t>(i);
        if (role == IndexRole::Stage && world_.placement.by_microbatch()) find_microbatch(op, place);
        if (runs_on_replicas(op)) {
          place.rule = KindPlace::Rule::Replica;
          place.replica = static_cast<std::uint32_t>(op.indices.size());
        }
        return;
      }
    }
    evaluator_.fail("no-device", op.name_span,
                    fmt::format("nothing says on which device `{}` runs: it has no stage, no device and no `on device`",
                                op.name));
  }

 private:
  static std::size_t index_of(const OpCode& op, IndexRole role) {
    std::size_t i = 0;
    while (i < op.indices.size() && op.indices[i].role != role) ++i;
    return i;
  }
  static std::size_t stage_of(const OpCode& op) { return index_of(op, IndexRole::Stage); }

  /// Exists only where its microbatch visits its stage.
  bool has_route(const OpCode& op) const {
    return world_.routes.given() && stage_of(op) < op.indices.size() &&
           index_of(op, IndexRole::Microbatch) < op.indices.size();
  }

  /// Has a stage and nothing that says on which of its devices.
  bool runs_on_replicas(const OpCode& op) const {
    const auto has = [&](IndexRole role) { return index_of(op, role) < op.indices.size(); };
    return world_.placement.by_microbatch() && has(IndexRole::Stage) && !has(IndexRole::Microbatch) &&
           !has(IndexRole::Device) && !op.device.valid();
  }

  /// Exists only for the slices that its microbatch has.
  bool has_missing_slices(const OpCode& op) const {
    return slices_differ_ && index_of(op, IndexRole::Slice) < op.indices.size() &&
           index_of(op, IndexRole::Microbatch) < op.indices.size();
  }

  void find_microbatch(const OpCode& op, KindPlace& place) {
    const std::size_t i = index_of(op, IndexRole::Microbatch);
    if (i < op.indices.size()) place.microbatch = static_cast<std::uint32_t>(i);
  }

  std::uint64_t too_many() const {
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < op_->indices.size(); ++i)
      count = std::min<std::uint64_t>(std::uint64_t(1) << 62, count * extents_[i]);
    return world_.ops.size() + count;
  }

  /// One more than the greatest index of a list; notes whether the list is not simply 0, 1, 2, ...
  std::uint32_t extent(std::size_t i, const Datum& list) {
    const TermId term = op_->indices[i].list;
    if (list.length() > kMaxOps) too_long(term, list.length());
    if (list.kind() == DatumKind::Rising && (list.length() == 0 || list[0].integer() == 0))
      return static_cast<std::uint32_t>(list.length());
    partial_ = true;
    std::uint32_t result = 0;
    for (std::int64_t k = 0; k < list.length(); ++k) {
      evaluator_.step(evaluator_.code().spans[term]);
      result = std::max(result, element(i, list[k]) + 1);
    }
    return result;
  }

  [[noreturn]] void too_long(TermId term, std::int64_t length) {
    evaluator_.fail("too-many", evaluator_.code().spans[term],
                    fmt::format("an index with {} values: there are at most {} ops", length, kMaxOps));
  }

  std::uint32_t element(std::size_t i, const Datum& datum) {
    const TermId term = op_->indices[i].list;
    if (!datum.is_whole() || datum.integer() < 0 || datum.integer() >= kMaxOps)
      evaluator_.fail("bad-index", evaluator_.code().spans[term],
                      fmt::format("an index of `{}` must be whole and from 0, and one of its list is {}", op_->name,
                                  datum.text()));
    return static_cast<std::uint32_t>(datum.integer());
  }

  template <class Visit>
  void each(std::size_t i, const Visit& visit) {
    if (i == op_->indices.size()) {
      visit();
      return;
    }
    const IndexCode& index = op_->indices[i];
    const Arena::Mark mark = evaluator_.arena().mark();
    const Datum list = evaluator_.list(index.list);
    evaluator_.enter_loop(index.slot);
    for (std::int64_t k = 0; k < list.length(); ++k) {
      evaluator_.step(evaluator_.code().spans[index.list]);
      at_[i] = element(i, list[k]);
      evaluator_.set(index.slot, Datum::whole(at_[i]));
      each(i + 1, visit);
    }
    evaluator_.leave_loop();
    evaluator_.arena().release(mark);
  }

  /// What the letter means, if the op has the indices that this needs.
  static Operation operation(const OpCode& op) {
    const Operation known = operation_of(op.name);
    const auto has = [&](IndexRole role) {
      return std::any_of(op.indices.begin(), op.indices.end(),
                         [&](const IndexCode& index) { return index.role == role; });
    };
    const bool per_update = known == Operation::ReduceGradient || known == Operation::Optimizer;
    return has(IndexRole::Stage) && (per_update || has(IndexRole::Microbatch)) ? known : Operation::Declared;
  }

  Evaluator& evaluator_;
  World& world_;
  const bool slices_differ_;
  const OpCode* op_ = nullptr;
  Index extents_ = {};
  Index at_ = {};
  bool partial_ = false;
  bool ragged_ = false;
};

}  // namespace

World make_world(Evaluator& evaluator) {
  World world;
  world.devices = evaluator.devices();
  if (evaluator.code().place) world.placement = evaluator.placement();
  world.routes = find_routes(evaluator);
  const std::uint32_t kinds = static_cast<std::uint32_t>(evaluator.code().ops.size());
  Boxes boxes(evaluator, world);
  for (std::uint32_t k = 0; k < kinds; ++k) boxes.add(k);
  for (std::uint32_t k = 0; k < kinds; ++k) boxes.find_existing(k);
  for (std::uint32_t k = 0; k < kinds; ++k) boxes.place(k);
  return world;
}

void refuse_slice(Evaluator& evaluator, const OpKind& kind, const Index& index, Span span) {
  if (!evaluator.slices_differ() || !slice_outside(evaluator, kind, index)) return;
  const std::uint32_t microbatch = index[index_of(kind, IndexRole::Microbatch)];
  evaluator.fail("index-outside", span,
                 fmt::format("microbatch {} has no slice {}: its slices run from 0 to {}", microbatch,
                             index[index_of(kind, IndexRole::Slice)], evaluator.slices_of(microbatch) - 1));
}

std::vector<std::uint16_t> devices_of_ops(const World& world) {
  std::vector<std::uint16_t> result(world.ops.size());
  for (std::uint32_t k = 0; k < world.ops.kinds().size(); ++k) {
    const OpKind& kind = world.ops.kinds()[KindId(k)];
    const KindPlace& place = world.places[k];
    if (place.rule == KindPlace::Rule::Listed) {
      std::copy(place.listed.begin(), place.listed.end(), result.begin() + kind.first);
      continue;
    }
    if (place.rule == KindPlace::Rule::Replica) {
      for (std::uint32_t n = 0; n < kind.count; ++n) {
        const auto index = [&](std::uint32_t i) { return n / world.strides[k][i] % kind.indices[i].extent; };
        const auto row = world.placement.replicas[index(place.index)];
        result[kind.first + n] = row[std::min<std::size_t>(index(place.replica), row.size() - 1)];
      }
      continue;
    }
    if (place.rule == KindPlace::Rule::Stage && world.placement.by_microbatch()) {
      for (std::uint32_t n = 0; n < kind.count; ++n) {
        const auto index = [&](std::uint32_t i) { return n / world.strides[k][i] % kind.indices[i].extent; };
        result[kind.first + n] = world.placement.of(index(place.index), index(place.microbatch));
      }
      continue;
    }
    const std::uint32_t stride = world.strides[k][place.index];
    const std::uint32_t extent = std::max<std::uint32_t>(1, kind.indices[place.index].extent);
    for (std::uint32_t n = 0; n < kind.count; n += stride) {
      const std::uint32_t v = n / stride % extent;
      const std::uint16_t device =
          place.rule == KindPlace::Rule::Stage ? world.placement.of(v, 0) : static_cast<std::uint16_t>(v);
      std::fill_n(result.begin() + kind.first + n, std::min(stride, kind.count - n), device);
    }
  }
  return result;
}

}  // namespace stave
