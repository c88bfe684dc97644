#include "executor/partition.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "executor/plan.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// What a table does of a triple.
constexpr std::uint8_t kForward = 1;
constexpr std::uint8_t kInputGradient = 2;
constexpr std::uint8_t kWeightGradient = 4;
constexpr std::uint8_t kRecompute = 8;
constexpr std::uint8_t kComplete = kForward | kInputGradient | kWeightGradient;

// 0 if stages compute nothing for it.
std::uint8_t work_of(Operation operation) {
  switch (operation) {
    case Operation::Forward: return kForward;
    case Operation::InputGradient: return kInputGradient;
    case Operation::WeightGradient: return kWeightGradient;
    case Operation::Backward: return kInputGradient | kWeightGradient;
    case Operation::Recompute: return kRecompute;
    case Operation::ReduceGradient:
    case Operation::Optimizer:
    case Operation::Declared: return 0;
  }
  return 0;
}

class Finder {
 public:
  Finder(const Program& program, const Plan& plan) : p_(program), plan_(plan), ops_(program.table.ops) {}

  Result<Partition> find() {
    if (Result<void> result = measure(); !result) return result.failure();
    for (std::uint32_t position = 0; position < p_.table.size(); ++position)
      if (plan_.work[position] == Work::Train)
        if (Result<void> result = take(position); !result) return result.failure();
    if (Result<void> result = check_complete(); !result) return result.failure();
    if (Result<void> result = find_routes(); !result) return result.failure();
    for (std::uint32_t position = 0; position < p_.table.size(); ++position)
      if (plan_.work[position] == Work::Train)
        if (Result<void> result = check_gradient(position); !result) return result.failure();
    for (std::size_t visit = 0; visit < device_.size(); ++visit) {
      if (!device_[visit].valid()) continue;
      std::vector<DeviceId>& all = result_.devices[StageId(static_cast<std::uint32_t>(visit / result_.microbatches))];
      const auto at = std::ranges::lower_bound(all, device_[visit]);
      if (at == all.end() || *at != device_[visit]) all.insert(at, device_[visit]);
    }
    return std::move(result_);
  }

 private:
  Result<void> measure() {
    const KindId forward = ops_.find(Operation::Forward);
    if (!forward.valid()) return Failure{"a schedule without forward ops, F, trains nothing"};
    const OpKind& kind = ops_.kinds()[forward];
    result_.stages = kind.extent(IndexRole::Stage);
    result_.microbatches = kind.extent(IndexRole::Microbatch);
    result_.slices = std::max(1u, kind.extent(IndexRole::Slice));
    if (result_.stages == 0 || result_.microbatches == 0) return Failure{"a forward needs a stage and a microbatch"};
    result_.sizes = p_.sizes;
    const std::vector<std::vector<std::uint32_t>>& rows = p_.sizes.slices;
    for (std::size_t m = 0; m < rows.size() && rows.size() == result_.microbatches; ++m) {
      if (rows[m].empty() || rows[m].size() > result_.slices)
        return Failure{"the program contradicts itself: microbatch " + std::to_string(m) + " has " +
                       std::to_string(rows[m].size()) + " slices"};
      result_.own_slices.push_back(static_cast<std::uint32_t>(rows[m].size()));
    }
    const auto is_most = [&](std::uint32_t own) { return own == result_.slices; };
    if (std::ranges::all_of(result_.own_slices, is_most)) result_.own_slices.clear();
    result_.devices.resize(result_.stages);
    const std::size_t visits = static_cast<std::size_t>(result_.stages) * result_.microbatches;
    work_.assign(result_.triples(), 0);
    device_.assign(visits, DeviceId());
    before_.assign(visits, kUnknown);
    forwards_.assign(visits, 0);
    backwards_.assign(visits, 0);
    return {};
  }

  std::uint32_t slice(OpId op) const { return slice_of(ops_, op); }
  std::size_t visit(OpId op) const {
    return static_cast<std::size_t>(ops_.stage(op)) * result_.microbatches + ops_.microbatch(op);
  }

  std::uint8_t work(OpId op) const {
    const OpKind& kind = ops_.kind(op);
    std::uint8_t result = work_of(kind.operation);
    for (KindId part : kind.parts) result |= work_of(ops_.kinds()[part].operation);
    return result;
  }

  Result<void> take(std::uint32_t position) {
    const OpId op = p_.table.entries[position];
    const std::uint32_t s = ops_.stage(op);
    const std::uint32_t m = ops_.microbatch(op);
    const std::uint32_t q = slice(op);
    if (s >= result_.stages || m >= result_.microbatches || q >= result_.slices_of(m))
      return Failure{"the program contradicts itself: " + ops_.text(op) + " lies outside the stages"};
    DeviceId& device = device_[visit(op)];
    if (device.valid() && device != plan_.device[position])
      return Failure{"microbatch " + std::to_string(m) + " meets stage " + std::to_string(s) + " on device " +
                     std::to_string(device.value) + " and on device " + std::to_string(plan_.device[position].value) +
                     "; its activations stay on one"};
    device = plan_.device[position];
    const bool checked = !p_.order.empty();
    if (p_.stash[position] == kNone && checked)
      return Failure{"the program contradicts itself: " + ops_.text(op) + " has no stash"};
    const std::uint8_t mine = work(op);
    std::uint8_t& done = work_[result_.triple(s, m, q)];
    if ((done & mine) != 0) return Failure{ops_.text(op) + " repeats work that another op has done"};
    if ((mine & kRecompute) != 0) {
      if (checked && ((done & kForward) == 0 || (done & (kInputGradient | kWeightGradient)) != 0))
        return Failure{ops_.text(op) + " recomputes for a backward, but does not stand between it and the forward"};
      result_.recomputed.resize(result_.triples(), 0);
      result_.recomputed[result_.triple(s, m, q)] = 1;
    }
    done |= mine;
    // Attention reads what the slices before have kept, and adds to their gradients.
    if ((mine & kForward) != 0) {
      if (checked && forwards_[visit(op)] != q)
        return Failure{ops_.text(op) + " does not come right after the forward of the slice before it, which it reads"};
      ++forwards_[visit(op)];
      return take_activation(position);
    }
    if ((mine & kInputGradient) != 0) {
      if (checked && backwards_[visit(op)] != result_.slices_of(m) - 1 - q)
        return Failure{ops_.text(op) +
                       " does not come right after the backward of the slice after it, whose gradient it needs"};
      ++backwards_[visit(op)];
    }
    return {};
  }

  // The stage whose data of the name `payload` an op reads; kNone if none, kUnknown if the order makes it later.
  Result<std::uint32_t> source(std::uint32_t position, std::uint16_t payload, std::uint8_t made_by) const {
    const OpId op = p_.table.entries[position];
    std::uint32_t found = kNone;
    for (std::uint32_t i = p_.reads.first[position]; i < p_.reads.first[position + 1]; ++i) {
      if (payload == 0 || p_.reads.items[i].payload != payload) continue;
      const std::string& name = p_.payloads[payload];
      if (found != kNone)
        return Failure{ops_.text(op) + " receives several values named " + name + "; stages take one"};
      const OpId maker = plan_.expected[i];
      found = kUnknown;
      if (!maker.valid()) continue;
      if ((work(maker) & made_by) == 0 || ops_.microbatch(maker) != ops_.microbatch(op) || slice(maker) != slice(op))
        return Failure{ops_.text(op) + " would take the " + name + " of " + ops_.text(maker) +
                       ", which stages cannot use"};
      found = ops_.stage(maker);
    }
    return found;
  }

  Result<void> take_activation(std::uint32_t position) {
    const OpId op = p_.table.entries[position];
    Result<std::uint32_t> from = source(position, plan_.activation, kForward);
    if (!from) return from.failure();
    // With other data alone it would not be the first of its route, but a stage that gets its input in a way that only
    // the schedule knows.
    for (const SlotUse& use : p_.reads[position])
      if (*from == kNone && use.payload != 0 && use.payload != plan_.weights)
        return Failure{ops_.text(op) + " receives " + p_.payloads[use.payload] +
                       " and no activation, which stages cannot use"};
    std::uint32_t& before = before_[visit(op)];
    if (slice(op) > 0 && before != *from)
      return Failure{ops_.text(op) + " takes another way than the slice before it"};
    before = *from;
    return {};
  }

  Result<void> check_complete() const {
    for (std::size_t visit = 0; visit < device_.size(); ++visit) {
      if (!device_[visit].valid()) continue;
      const auto m = static_cast<std::uint32_t>(visit % result_.microbatches);
      for (std::uint32_t q = 0; q < result_.slices_of(m); ++q) {
        if ((work_[visit * result_.slices + q] & kComplete) == kComplete) continue;
        return Failure{"a training step needs F, I and W of every stage and microbatch, but that of stage " +
                       std::to_string(visit / result_.microbatches) + ", microbatch " +
                       std::to_string(m) +
                       (result_.slices_of(m) > 1 ? ", slice " + std::to_string(q) : "") + " is not complete"};
      }
    }
    return {};
  }

  Result<void> find_routes() {
    std::map<std::vector<StageId>, std::uint32_t> known;
    std::vector<std::uint32_t> after(result_.stages);
    for (std::uint32_t m = 0; m < result_.microbatches; ++m) {
      const std::string name = "microbatch " + std::to_string(m);
      std::ranges::fill(after, kNone);
      std::uint32_t first = kNone;
      std::uint32_t visited = 0;
      for (std::uint32_t s = 0; s < result_.stages; ++s) {
        const std::size_t visit = static_cast<std::size_t>(s) * result_.microbatches + m;
        if (!device_[visit].valid()) continue;
        ++visited;
        std::uint32_t before = before_[visit];
        // Such an op waits in vain; where it would come from if it did not is of no account.
        if (before == kUnknown) before = s == 0 ? kNone : s - 1;
        std::uint32_t& taken = before == kNone ? first : after[before];
        if (taken != kNone)
          return Failure{name + " has several ways: stages " + std::to_string(taken) + " and " + std::to_string(s) +
                         (before == kNone ? " both begin one" : " both follow stage " + std::to_string(before))};
        taken = s;
      }
      if (visited == 0) return Failure{name + " visits no stage"};
      std::vector<StageId> route;
      for (std::uint32_t s = first; s != kNone && route.size() < visited; s = after[s]) route.push_back(StageId(s));
      if (route.size() != visited) return Failure{name + " visits stages that its way does not lead to"};
      const auto [at, added] = known.try_emplace(std::move(route), static_cast<std::uint32_t>(result_.routes.size()));
      if (added) result_.routes.push_back(at->first);
      result_.route_of.push_back(at->second);
    }
    return {};
  }

  Result<void> check_gradient(std::uint32_t position) const {
    const OpId op = p_.table.entries[position];
    if ((work(op) & kInputGradient) == 0) return {};
    const std::vector<StageId>& route = result_.route(ops_.microbatch(op));
    const auto at = std::ranges::find(route, StageId(ops_.stage(op)));
    const std::uint32_t expected = at + 1 == route.end() ? kNone : at[1].value;
    Result<std::uint32_t> from = source(position, plan_.gradient, kInputGradient);
    if (!from) return from.failure();
    if (*from == expected || *from == kUnknown) return {};
    const auto of = [](std::uint32_t s) {
      return s == kNone ? "no gradient" : "the gradient of stage " + std::to_string(s);
    };
    return Failure{ops_.text(op) + " receives " + of(*from) + "; by the way of the activations it must be " +
                   of(expected)};
  }

  static constexpr std::uint32_t kUnknown = UINT32_MAX - 1;

  const Program& p_;
  const Plan& plan_;
  const OpSet& ops_;
  Partition result_;
  // By triple; and by (stage, microbatch): its device, the stage before it, how many slices have come so far.
  std::vector<std::uint8_t> work_;
  std::vector<DeviceId> device_;
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> forwards_;
  std::vector<std::uint32_t> backwards_;
};

}  // namespace

bool Partition::begins_some(StageId s) const {
  return std::ranges::any_of(routes, [&](const std::vector<StageId>& route) { return route.front() == s; });
}

bool Partition::ends_some(StageId s) const {
  return std::ranges::any_of(routes, [&](const std::vector<StageId>& route) { return route.back() == s; });
}

std::size_t Partition::replicas_here(StageId s) const {
  return static_cast<std::size_t>(std::ranges::count_if(devices[s], [&](DeviceId d) { return is_here(d); }));
}

std::uint32_t slice_of(const OpSet& ops, OpId op) {
  const std::uint32_t slice = ops.index(op, IndexRole::Slice);
  return slice == kNone ? 0 : slice;
}

Partition plain_partition(std::uint32_t stages, std::uint32_t microbatches, std::uint32_t slices) {
  Partition result;
  result.stages = stages;
  result.microbatches = microbatches;
  result.slices = slices;
  result.routes.resize(1);
  for (std::uint32_t s = 0; s < stages; ++s) result.routes[0].push_back(StageId(s));
  result.route_of.assign(microbatches, 0);
  result.devices.assign(stages, {DeviceId(0)});
  result.updates.assign(stages, 0);
  return result;
}

Partition plainly(Partition partition) {
  partition.recomputed.clear();
  partition.here.clear();
  for (std::uint32_t s = 0; s < partition.stages && partition.has_updates(); ++s)
    partition.kept[StageId(s)] = partition.updates[StageId(s)] + 1;
  for (std::vector<DeviceId>& devices : partition.devices)
    if (!devices.empty()) devices.assign(1, DeviceId(0));
  return partition;
}

Result<Partition> find_partition(const Program& program, const Plan& plan) { return Finder(program, plan).find(); }

}  // namespace stave
