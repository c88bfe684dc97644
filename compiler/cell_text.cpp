#include "compiler/cell_text.h"

#include <algorithm>
#include <vector>

namespace stave {

bool has_short_cell(const OpKind& kind) {
  // `K20` would be read as microbatch 20 of `K`.
  if (std::any_of(kind.name.begin(), kind.name.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
  bool stage = false;
  bool microbatch = false;
  for (const OpIndex& index : kind.indices) {
    if (index.role == IndexRole::Stage && !stage)
      stage = true;
    else if (index.role == IndexRole::Microbatch && !microbatch)
      microbatch = true;
    else if (index.role != IndexRole::Slice || index.extent != 1)
      return false;
  }
  return stage && microbatch;
}

std::string cell_text(const OpSet& ops, OpId op, bool with_stage) {
  const OpKind& kind = ops.kind(op);
  if (!has_short_cell(kind)) return ops.text(op);
  return (with_stage ? std::to_string(ops.stage(op)) : "") + kind.name + std::to_string(ops.microbatch(op));
}

CellText::CellText(const Schedule& schedule) : ops_(schedule.ops) {
  std::vector<std::uint32_t> stage_of(schedule.devices, OpId::kNone);
  for (const OpKind& kind : schedule.ops.kinds()) {
    if (!has_short_cell(kind) || !kind.parts.empty()) continue;
    for (std::uint32_t i = 0; i < kind.count && !several_; ++i) {
      const OpId op(kind.first + i);
      if (!schedule.op_exists(op)) continue;
      std::uint32_t& stage = stage_of[schedule.device_of[op.value]];
      const std::uint32_t mine = schedule.ops.stage(op);
      several_ = stage != OpId::kNone && stage != mine;
      stage = mine;
    }
    break;
  }
}

std::string CellText::on(OpId op, DeviceId device) const {
  return "`" + (*this)(op) + "` on device " + std::to_string(device.value);
}

}  // namespace stave
