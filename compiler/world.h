// World: the ops of a schedule under one set of parameters: how many of each kind, which exist, and where they run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/evaluate.h"
#include "compiler/placement.h"
#include "compiler/routes.h"
#include "core/op_set.h"

namespace stave {

/// What decides the device of the ops of a kind.
struct KindPlace {
  enum class Rule : std::uint8_t { Stage, Device, Listed, Replica };
  Rule rule = Rule::Stage;
  /// Stage, Device: the index that counts; Replica: that of the stage.
  std::uint32_t index = 0;
  /// Replica: the index that says which; the last.
  std::uint32_t replica = 0;
  /// Stage: the index of the microbatch, on which the place may depend too.
  std::uint32_t microbatch = 0;
  /// Listed: by number of the op within its kind.
  std::vector<std::uint16_t> listed;
};

struct World {
  std::uint32_t devices = 0;
  /// Its kinds are numbered as the ops of the Code.
  OpSet ops;
  /// Empty: all exist.
  std::vector<bool> exists;
  /// Some op of the kind does not exist. Shape: [kind].
  std::vector<bool> partial;
  /// Shape: [kind].
  std::vector<KindPlace> places;
  Placement placement;
  Routes routes;
  /// Step of each index in the number of an op. Shape: [kind][index].
  std::vector<std::array<std::uint32_t, kMaxIndices>> strides;
  /// The order has ops of the kind; others are optional, and nothing waits for them. Shape: [kind]; set with the order.
  std::vector<bool> runs;

  std::uint32_t device(std::uint32_t kind, const std::array<std::uint32_t, kMaxIndices>& index,
                       std::uint32_t number) const {
    const KindPlace& place = places[kind];
    switch (place.rule) {
      case KindPlace::Rule::Stage: return placement.of(index[place.index], index[place.microbatch]);
      case KindPlace::Rule::Device: return index[place.index];
      case KindPlace::Rule::Listed: return place.listed[number];
      case KindPlace::Rule::Replica: return placement.replicas[index[place.index]][index[place.replica]];
    }
    return 0;
  }
  bool op_exists(std::uint32_t kind, std::uint32_t op) const { return !partial[kind] || exists[op]; }
};

/// Errors: a diagnostic, and Stop.
World make_world(Evaluator& evaluator);

/// Says so if these indices of an op name a slice that their microbatch does not have, which others have.
void refuse_slice(Evaluator& evaluator, const OpKind& kind, const std::array<std::uint32_t, kMaxIndices>& index,
                  Span span);

/// The device of every op. Shape: [op].
std::vector<std::uint16_t> devices_of_ops(const World& world);

}  // namespace stave
