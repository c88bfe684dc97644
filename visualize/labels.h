// Labels: what is written in the box of an op.
// Where the box stands and how it is coloured belongs to the renderers.
#pragma once

#include <string>
#include <vector>

#include "core/table.h"

namespace stave {

/// Writes the labels of one table's ops, as PyTorch's tables do: `F0`, and `2F0` where a device has several stages.
class Labels {
 public:
  /// Cost: O(ops), once.
  explicit Labels(const Table& table);

  /// The whole label; an index that is none of stage, microbatch and slice follows a colon.
  std::string whole(OpId op) const;
  /// Without the stage: `F0`.
  std::string without_stage(OpId op) const;
  /// The letter alone.
  const std::string& letter(OpId op) const { return table_.ops.kind(op).name; }
  /// True if the device of `position` runs ops of several stages.
  bool several_stages() const { return several_; }
  /// How many stages lower than this op's its device has: its chunk. 0 for an op without a stage.
  std::uint32_t chunk(DeviceId device, OpId op) const;

 private:
  std::string text(OpId op, bool stage) const;

  const Table& table_;
  /// Stages of each device, rising.
  IdVector<DeviceId, std::vector<std::uint32_t>> stages_;
  bool several_ = false;
};

}  // namespace stave
