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

  /// The whole label, then shorter ones: without the stage, `F0`; the letter alone. An index that is none of stage,
  /// microbatch and slice follows a colon. Of an overlapped pair, by its first position, both: `0F7+3B5`.
  std::vector<std::string> of(std::uint32_t position) const;
  std::string whole(std::uint32_t position) const;
  /// The op that overlaps with the one at `position` and stands after it; not valid if there is none.
  OpId partner(std::uint32_t position) const;
  /// True if the device of `position` runs ops of several stages.
  bool several_stages() const { return several_; }
  /// How many stages lower than this op's its device has: its chunk. 0 for an op without a stage.
  std::uint32_t chunk(DeviceId device, OpId op) const;

 private:
  std::string text(OpId op, bool stage) const;
  template <class Text>
  std::string joined(std::uint32_t position, const Text& text) const;

  const Table& table_;
  /// Stages of each device, rising.
  IdVector<DeviceId, std::vector<std::uint32_t>> stages_;
  std::vector<std::uint32_t> block_of_;
  bool several_ = false;
};

}  // namespace stave
