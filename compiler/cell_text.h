// An op as the cells of a table write it: `F0`, `2F0` with its stage, `Decode(0, 1, 2)` where the indices are others.
#pragma once

#include <string>

#include "compiler/schedule.h"
#include "core/op_set.h"

namespace stave {

/// True if an op of this kind is written stage, letter, microbatch: it has these two indices, and slices if any are
/// one, and no digit in its name.
bool has_short_cell(const OpKind& kind);

/// The cell of `op`, with its stage in front or without; an op with other indices is written out in full.
std::string cell_text(const OpSet& ops, OpId op, bool with_stage);

/// Cells for messages: the stage stands in front only where a device has several.
class CellText {
 public:
  /// Cost: O(ops), once.
  explicit CellText(const Schedule& schedule);
  /// "F0".
  std::string operator()(OpId op) const { return cell_text(ops_, op, several_); }
  /// "`F0` on device 1".
  std::string on(OpId op, DeviceId device) const;

 private:
  const OpSet& ops_;
  bool several_ = false;
};

}  // namespace stave
