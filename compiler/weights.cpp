#include "compiler/weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "compiler/activations.h"
#include "compiler/cell_text.h"
#include "compiler/code.h"
#include "compiler/expansion.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = WeightVersions::kNone;

/// What a kind does with weights, fused ones included.
enum class Use : std::uint8_t { Nothing, Forward, Backward, Update };

Use use_of(const OpSet& ops, const OpKind& kind) {
  if (kind.extent(IndexRole::Stage) == 0) return Use::Nothing;
  if (kind.operation == Operation::Optimizer) return Use::Update;
  if (kind.extent(IndexRole::Microbatch) == 0) return Use::Nothing;
  bool forward = kind.operation == Operation::Forward;
  bool backward = info(kind.operation).uses_activation && !forward;
  for (KindId part : kind.parts) {
    forward = forward || ops.kinds()[part].operation == Operation::Forward;
    backward = backward || info(ops.kinds()[part].operation).uses_activation;
  }
  return forward ? Use::Forward : backward ? Use::Backward : Use::Nothing;
}

class Versions {
 public:
  Versions(const Schedule& schedule, const Table& table, const TableNeeds& needs)
      : schedule_(schedule), table_(table), needs_(needs), activations_(table.ops) {
    for (const OpKind& kind : table.ops.kinds()) uses_.push_back(use_of(table.ops, kind));
    for (std::size_t p = 1; p < schedule.payloads.size(); ++p)
      if (schedule.payloads[p] == kWeightsPayload) payload_ = static_cast<std::uint16_t>(p);
  }

  WeightVersions all() {
    if (!makes() || !find_reads()) return {};
    return std::move(result_);
  }

 private:
  Use use(std::uint32_t position) const { return uses_[table_.ops.kind_of(table_.entries[position]).value]; }

  /// False if there is nothing to say.
  bool makes() {
    const bool updates = std::any_of(table_.entries.begin(), table_.entries.end(), [&](OpId op) {
      return uses_[table_.ops.kind_of(op).value] == Use::Update;
    });
    receives_ = payload_ != 0 && forwards_receive();
    if (!updates && !receives_) return false;
    result_.makes.assign(table_.size(), kNone);
    std::vector<std::uint32_t> count;
    for (std::uint32_t d = 0; d < table_.devices(); ++d) {
      count.assign(schedule_.stages, 0);
      for (std::uint32_t position = table_.first[d]; position < table_.first[d + 1]; ++position)
        if (use(position) == Use::Update)
          result_.makes[position] = ++count[table_.ops.stage(table_.entries[position])];
    }
    return true;
  }

  /// Whether forwards are declared to receive weights: then one that receives none reads those of the start.
  bool forwards_receive() const {
    if (schedule_.expansion != nullptr) {
      const Code& code = *schedule_.expansion->code;
      for (std::uint32_t k = 0; k < uses_.size(); ++k)
        if (uses_[k] == Use::Forward)
          for (const NeedCode& need : code.ops[k].needs)
            if (need.message == kWeightsPayload) return true;
      return false;
    }
    for (std::uint32_t position = 0; position < table_.size(); ++position)
      if (use(position) == Use::Forward && source(position) != kNone) return true;
    return false;
  }

  /// The entry whose weights one receives, or kNone.
  std::uint32_t source(std::uint32_t position) const {
    std::uint32_t result = kNone;
    needs_.for_each(position, [&](std::uint32_t at, std::uint16_t payload) {
      if (payload == payload_ && payload != 0) result = at;
    });
    return result;
  }

  bool find_reads() {
    result_.reads.assign(table_.size(), kNone);
    result_.received.assign(table_.size(), false);
    std::vector<std::uint32_t> newest;
    for (std::uint32_t d = 0; d < table_.devices(); ++d) {
      newest.assign(schedule_.stages, 0);
      for (std::uint32_t position = table_.first[d]; position < table_.first[d + 1]; ++position) {
        const std::uint32_t stage = table_.ops.stage(table_.entries[position]);
        if (use(position) == Use::Update) newest[stage] = result_.makes[position];
        if (use(position) == Use::Forward)
          result_.reads[position] = receives_ ? follow(position) : newest[stage];
      }
    }
    // By triple, what its forward read.
    std::vector<std::uint32_t> read_by(activations_.triples(), kNone);
    for (std::uint32_t position = 0; position < table_.size(); ++position)
      if (use(position) == Use::Forward) read_by[activations_.triple(table_.entries[position])] = position;
    for (std::uint32_t position = 0; position < table_.size(); ++position) {
      if (use(position) != Use::Forward && use(position) != Use::Backward) continue;
      const std::uint32_t forward = read_by[activations_.triple(table_.entries[position])];
      if (forward == kNone) continue;
      result_.reads[position] = result_.reads[forward];
      const std::uint32_t from = source(forward);
      result_.received[position] =
          from != kNone && table_.device_of(from) != table_.device_of(position);
    }
    return true;
  }

  /// The version that a forward receives, through forwards that hand it on: no op needs itself by way of others.
  std::uint32_t follow(std::uint32_t position) {
    std::vector<std::uint32_t> chain;
    std::uint32_t version = 0;
    while (position != kNone) {
      if (result_.makes[position] != kNone) version = result_.makes[position];
      else if (result_.reads[position] != kNone) version = result_.reads[position];
      else {
        chain.push_back(position);
        position = source(position);
        continue;
      }
      break;
    }
    for (std::uint32_t each : chain) result_.reads[each] = version;
    return version;
  }

  const Schedule& schedule_;
  const Table& table_;
  const TableNeeds& needs_;
  Activations activations_;
  std::vector<Use> uses_;
  /// Index of the messages that carry weights; 0 if there are none.
  std::uint16_t payload_ = 0;
  /// Some forward receives its weights.
  bool receives_ = false;
  WeightVersions result_;
};

/// How many replicas there are of each reduction or update, and how many of them stand in the table.
struct Together {
  std::uint32_t exist = 0;
  std::uint32_t stand = 0;
  OpId first;
};

/// One error for a stage that is updated without its replicas' gradients, or on some of its replicas alone.
bool verify_reduced(const Schedule& schedule, const Table& table, Diagnostics& sink) {
  const auto of_update = [](const OpKind& kind) {
    return kind.extent(IndexRole::Replica) > 1 &&
           (kind.operation == Operation::ReduceGradient || kind.operation == Operation::Optimizer);
  };
  const auto& kinds = table.ops.kinds();
  if (std::none_of(kinds.begin(), kinds.end(), of_update)) return true;
  std::vector<bool> reduced(schedule.stages, false);
  std::map<std::uint32_t, Together> all;
  for (OpId op : table.entries) {
    const OpKind& kind = table.ops.kind(op);
    if (kind.operation == Operation::ReduceGradient) reduced[table.ops.stage(op)] = true;
    if (!of_update(kind)) continue;
    // The replica is the last index.
    const std::uint32_t replicas = kind.extent(IndexRole::Replica);
    const std::uint32_t base = kind.first + (op.value - kind.first) / replicas * replicas;
    Together& mine = all[base];
    if (mine.stand++ == 0) mine.first = op;
    if (mine.exist == 0)
      for (std::uint32_t i = 0; i < replicas; ++i) mine.exist += schedule.op_exists(OpId(base + i));
  }
  for (const auto& [unused, mine] : all) {
    const std::uint32_t stage = table.ops.stage(mine.first);
    const bool update = table.ops.kind(mine.first).operation == Operation::Optimizer;
    const bool unreduced = update && mine.exist > 1 && !reduced[stage];
    if (mine.stand == mine.exist && !unreduced) continue;
    const std::string name = "`" + table.ops.text(mine.first) + "`";
    Diagnostic diagnostic;
    diagnostic.kind = "unreduced";
    if (unreduced) {
      diagnostic.message =
          name + " updates stage " + std::to_string(stage) + ", and the gradients of its replicas are not reduced";
      diagnostic.notes.push_back("stage " + std::to_string(stage) +
                                 " has several replicas: each would take a step of its own");
      diagnostic.fix = "write its `G(" + std::to_string(stage) + ")` before";
    } else {
      diagnostic.message = name + " stands on " + std::to_string(mine.stand) + " of the " + std::to_string(mine.exist) +
                           " devices with a replica of stage " + std::to_string(stage);
      diagnostic.notes.push_back(update ? "replicas that are not all updated are no longer the same"
                                        : "a reduction needs the gradients of all replicas");
    }
    if (schedule.origins)
      diagnostic.primary.span =
          schedule.origins->of(DeviceId(schedule.device_of[mine.first.value]), mine.first).span;
    sink.add(std::move(diagnostic));
    return false;
  }
  return true;
}

}  // namespace

WeightVersions weight_versions(const Schedule& schedule, const Table& table, const TableNeeds& needs) {
  return Versions(schedule, table, needs).all();
}

std::vector<std::uint32_t> staleness(const Schedule& schedule, const Table& table, const WeightVersions& versions) {
  std::vector<std::uint32_t> result(schedule.stages, 0);
  if (versions.makes.empty()) return result;
  const TableNeeds needs(schedule, table);
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    const std::uint32_t made = versions.makes[position];
    if (made == kNone) continue;
    std::uint32_t& most = result[table.ops.stage(table.entries[position])];
    needs.for_each(position, [&](std::uint32_t used, std::uint16_t) {
      const std::uint32_t read = versions.reads[used];
      if (read != kNone && read < made) most = std::max(most, made - 1 - read);
    });
  }
  return result;
}

bool verify_weights(const Schedule& schedule, const Table& table, const WeightVersions& versions, Diagnostics& sink) {
  if (!verify_reduced(schedule, table, sink)) return false;
  if (versions.makes.empty()) return true;
  std::vector<std::uint32_t> newest;
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    const DeviceOrder& order = schedule.orders[DeviceId(d)];
    if (!order.version_limit) continue;
    newest.assign(schedule.stages, 0);
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      const std::uint32_t stage = table.ops.stage(op);
      if (versions.makes[position] != kNone) newest[stage] = versions.makes[position];
      const std::uint32_t read = versions.reads[position];
      if (read == kNone || versions.received[position] || Rational(std::int64_t(newest[stage]) - read) < *order.version_limit) continue;
      const CellText cell(schedule);
      Diagnostic diagnostic;
      diagnostic.kind = "version-lost";
      diagnostic.message = cell.on(op, DeviceId(d)) + " reads version " + std::to_string(read) + " of stage " +
                           std::to_string(stage) + ", which is no longer kept: the newest is " +
                           std::to_string(newest[stage]);
      const Origin origin = schedule.origins ? schedule.origins->of(DeviceId(d), op) : Origin();
      diagnostic.primary = {origin.span, "needs " + std::to_string(newest[stage] - read + 1) + " versions"};
      diagnostic.labels.push_back({order.version_limit_span, "this keeps the newest " + order.version_limit->text()});
      if (!origin.note.empty()) diagnostic.notes.push_back(origin.note);
      diagnostic.notes.push_back("version 0 is that of the start, and the v-th `O` of a stage makes version v");
      sink.add(std::move(diagnostic));
      return false;
    }
  }
  return true;
}

}  // namespace stave
