#include "executor/updates.h"

#include <algorithm>

#include "core/operations.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// Entries G and O of the table: every replica of a stage has as many, and they take in every gradient.
class Updates {
 public:
  Updates(const Program& p, Plan& plan) : p_(p), plan_(plan), ops_(p.table.ops) {}

  Result<void> find() {
    const std::uint32_t stages = plan_.model.stages;
    plan_.reduces_itself.assign(stages, 0);
    plan_.updates_itself.assign(stages, 0);
    plan_.meeting_of.assign(p_.table.size(), kNone);
    reductions_.resize(stages);
    updates_.assign(stages, kNone);
    plan_.weights_slot.assign(p_.table.size(), 0);
    plan_.weights_before.assign(p_.table.size(), 0);
    for (std::uint32_t s = 0; s < stages; ++s)
      plan_.newest_slot.emplace_back(plan_.model.devices[StageId(s)].size(), 0);
    plan_.model.updates.assign(stages, 0);
    for (std::uint32_t position = 0; position < p_.table.size(); ++position) {
      const Work work = plan_.work[position];
      if (work != Work::Reduce && work != Work::Update) continue;
      const std::uint32_t s = ops_.stage(p_.table.entries[position]);
      if (s >= stages || std::ranges::count(plan_.model.devices[StageId(s)], plan_.device[position]) == 0)
        return Failure{text(position) + " stands on device " + std::to_string(plan_.device[position].value) +
                       ", which does not have its stage: it needs the gradients there"};
      (work == Work::Reduce ? plan_.reduces_itself : plan_.updates_itself)[s] = 1;
    }
    has_updates_ = std::ranges::count(plan_.updates_itself, 1) > 0;
    if (has_updates_) {
      plan_.model.reads_version.assign(plan_.model.triples(), kNone);
      plan_.model.used_by.assign(plan_.model.triples(), 0);
      plan_.model.kept.assign(stages, 1);
    }
    for (std::uint32_t d = 0; d < p_.table.devices(); ++d)
      if (Result<void> result = walk(DeviceId(d)); !result) return result;
    for (std::uint32_t s = 0; s < stages; ++s) {
      if (plan_.updates_itself[s] != 0) plan_.model.updates[StageId(s)] = updates_[s];
      if (Result<void> result = meet(s); !result) return result;
    }
    return {};
  }

 private:
  struct Version {
    std::uint32_t slot = 0;
    // Position of the last op that reads it; that of the newest is the end of the device's order.
    std::uint32_t last_read = 0;
  };

  struct Seen {
    // The last W whose gradient no update has used, and whether that was summed over the replicas.
    std::uint32_t unused = kNone;
    bool is_summed = false;
    std::uint32_t updates = 0;
  };

  std::string text(std::uint32_t position) const { return ops_.text(p_.table.entries[position]); }

  bool gives_gradient(OpId op) const {
    const OpKind& kind = ops_.kind(op);
    const auto does = [](Operation o) { return o == Operation::WeightGradient || o == Operation::Backward; };
    return does(kind.operation) ||
           std::ranges::any_of(kind.parts, [&](KindId part) { return does(ops_.kinds()[part].operation); });
  }

  Result<void> walk(DeviceId d) {
    std::vector<Seen> seen(plan_.model.stages);
    // What stands behind an op that waits for one of its own device further on never runs.
    bool in_vain = false;
    for (std::uint32_t position = p_.table.first[d.value]; position < p_.table.first[d.value + 1]; ++position) {
      if (plan_.work[position] == Work::Wait) continue;
      const OpId op = p_.table.entries[position];
      const std::uint32_t s = ops_.stage(op);
      Seen& mine = seen[s];
      const auto has_no_slot = [](const SlotUse& use) { return use.slot == kNone; };
      in_vain = in_vain || std::ranges::any_of(p_.reads[position], has_no_slot);
      if (plan_.work[position] == Work::Train && !in_vain)
        if (Result<void> result = note_version(position, mine.updates); !result) return result;
      if (plan_.work[position] == Work::Reduce) {
        mine.is_summed = true;
        reductions_[s].push_back(position);
      } else if (plan_.work[position] == Work::Update) {
        if (has_replicas(s) && !mine.is_summed)
          return Failure{text(position) + " updates stage " + std::to_string(s) + ", which lies on several devices, " +
                         "but no G has summed their gradients"};
        mine = {kNone, false, mine.updates + 1};
      } else if (gives_gradient(op)) {
        mine.unused = position;
        mine.is_summed = false;
      }
    }
    place_versions(d);
    for (std::uint32_t s = 0; s < seen.size(); ++s) {
      const bool is_here = std::ranges::count(plan_.model.devices[StageId(s)], d) != 0;
      if (!is_here) continue;
      if (plan_.updates_itself[s] != 0 && seen[s].unused != kNone)
        return Failure{"no O uses the gradient of " + text(seen[s].unused)};
      if (plan_.updates_itself[s] == 0 && plan_.reduces_itself[s] != 0 && !seen[s].is_summed)
        return Failure{"no G sums the gradients of stage " + std::to_string(s) + " after " +
                       (seen[s].unused == kNone ? "the last op" : text(seen[s].unused))};
      if (updates_[s] == kNone) updates_[s] = seen[s].updates;
      if (updates_[s] != seen[s].updates)
        return Failure{"the devices of stage " + std::to_string(s) + " update it " + std::to_string(updates_[s]) +
                       " and " + std::to_string(seen[s].updates) + " times; its replicas would differ"};
    }
    return {};
  }

  std::uint32_t version_read(std::uint32_t position) const {
    const std::uint32_t read = p_.reads_version.empty() || !has_updates_ ? 0 : p_.reads_version[position];
    return read == kNone ? 0 : read;
  }

  // The same after `updates` of its stage: an op that can never run may read one that is made behind it.
  std::uint32_t version_read(std::uint32_t position, std::size_t updates) const {
    return static_cast<std::uint32_t>(std::min<std::size_t>(version_read(position), updates));
  }

  // What the partition says of an op that comes after `updates` of its stage on its device.
  Result<void> note_version(std::uint32_t position, std::uint32_t updates) {
    const OpId op = p_.table.entries[position];
    const std::uint32_t s = ops_.stage(op);
    for (std::uint32_t i = p_.reads.first[position]; i < p_.reads.first[position + 1]; ++i) {
      if (plan_.weights == 0 || p_.reads.items[i].payload != plan_.weights || !plan_.expected[i].valid()) continue;
      const OpId maker = plan_.expected[i];
      const Operation made_by = ops_.kind(maker).operation;
      if (ops_.stage(maker) != s || (made_by != Operation::Forward && made_by != Operation::Optimizer))
        return Failure{text(position) + " would take its weights from " + ops_.text(maker) +
                       ", which neither reads nor makes those of stage " + std::to_string(s)};
    }
    if (!has_updates_) return {};
    const std::size_t triple = plan_.model.triple(s, ops_.microbatch(op), slice_of(ops_, op));
    const std::uint32_t read = version_read(position);
    if (read > updates)
      return Failure{text(position) + " reads version " + std::to_string(read) + " of the weights of stage " +
                     std::to_string(s) + ", which device " + std::to_string(plan_.device[position].value) +
                     " has not made; weights come from other devices only as they are at the start of a step"};
    std::uint32_t& known = plan_.model.reads_version[triple];
    if (known != kNone && known != read)
      return Failure{text(position) + " reads version " + std::to_string(read) + " of the weights of stage " +
                     std::to_string(s) + ", but its forward read version " + std::to_string(known)};
    known = read;
    if (gives_gradient(op) && plan_.updates_itself[s] != 0) plan_.model.used_by[triple] = updates + 1;
    return {};
  }

  // Every version of a device's stages gets a place that no version still read has.
  void place_versions(DeviceId d) {
    const std::uint32_t end = p_.table.first[d.value + 1];
    std::vector<std::vector<Version>> versions(plan_.model.stages, std::vector<Version>(1));
    const auto each = [&](const auto& visit) {
      for (std::uint32_t position = p_.table.first[d.value]; position < end; ++position)
        if (plan_.work[position] == Work::Train || plan_.work[position] == Work::Update)
          visit(position, versions[ops_.stage(p_.table.entries[position])]);
    };
    each([&](std::uint32_t position, std::vector<Version>& mine) {
      if (plan_.work[position] == Work::Update) mine.emplace_back();
      else mine[version_read(position, mine.size() - 1)].last_read = position;
    });
    for (std::vector<Version>& mine : versions) mine.back().last_read = end;
    // By stage: which version has each place, and how many were made so far.
    std::vector<std::vector<std::uint32_t>> places(plan_.model.stages, {0});
    std::vector<std::uint32_t> made(plan_.model.stages, 0);
    each([&](std::uint32_t position, std::vector<Version>& mine) {
      const std::uint32_t s = ops_.stage(p_.table.entries[position]);
      if (plan_.work[position] == Work::Train) {
        plan_.weights_slot[position] = mine[version_read(position, made[s])].slot;
        return;
      }
      const std::uint32_t before = mine[made[s]++].slot;
      const auto is_free = [&](std::uint32_t version) { return mine[version].last_read < position; };
      std::vector<std::uint32_t>& all = places[s];
      // In its own place if it can; updates then copy nothing.
      const auto at = is_free(all[before]) ? all.begin() + before : std::ranges::find_if(all, is_free);
      const auto slot = static_cast<std::uint32_t>(at - all.begin());
      if (at == all.end()) all.push_back(0);
      all[slot] = made[s];
      mine[made[s]].slot = slot;
      plan_.weights_slot[position] = slot;
      plan_.weights_before[position] = before;
    });
    for (std::uint32_t s = 0; s < plan_.model.stages; ++s) {
      const std::vector<DeviceId>& devices = plan_.model.devices[StageId(s)];
      const auto at = std::ranges::find(devices, d);
      if (at == devices.end()) continue;
      plan_.newest_slot[s][static_cast<std::size_t>(at - devices.begin())] = versions[s].back().slot;
      if (!has_updates_) continue;
      std::uint32_t& kept = plan_.model.kept[StageId(s)];
      kept = std::max(kept, static_cast<std::uint32_t>(places[s].size()));
    }
  }

  bool has_replicas(std::uint32_t s) const { return plan_.model.devices[StageId(s)].size() > 1; }

  // The first G of every device meet, then the second ones, and so on.
  Result<void> meet(std::uint32_t s) {
    const std::vector<std::uint32_t>& all = reductions_[s];
    const std::size_t devices = plan_.model.devices[StageId(s)].size();
    if (all.empty()) return {};
    const std::size_t times = all.size() / devices;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool fits = all.size() % devices == 0 &&
                        plan_.device[all[i]] == plan_.model.devices[StageId(s)][i / times];
      if (!fits) return Failure{"the devices of stage " + std::to_string(s) + " do not have the same number of G"};
    }
    for (std::size_t k = 0; k < times; ++k) {
      for (std::size_t r = 0; r < devices; ++r) {
        const std::uint32_t position = all[r * times + k];
        plan_.meeting_of[position] = static_cast<std::uint32_t>(plan_.meetings.size());
        plan_.meetings.items.push_back(position);
      }
      plan_.meetings.end_row();
    }
    return {};
  }

  const Program& p_;
  Plan& plan_;
  const OpSet& ops_;
  // By stage: its G, by position; how often each of its devices updates it.
  std::vector<std::vector<std::uint32_t>> reductions_;
  std::vector<std::uint32_t> updates_;
  bool has_updates_ = false;
};

}  // namespace

Result<void> find_updates(const Program& program, Plan& plan) { return Updates(program, plan).find(); }

}  // namespace stave
