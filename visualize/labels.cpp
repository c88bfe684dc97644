#include "visualize/labels.h"

#include <algorithm>

namespace stave {

Labels::Labels(const Table& table) : table_(table), stages_(table.devices()) {
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    std::vector<std::uint32_t>& stages = stages_[DeviceId(d)];
    std::uint32_t last = OpId::kNone;
    for (OpId op : table.on(DeviceId(d))) {
      const std::uint32_t stage = table.ops.stage(op);
      if (stage == OpId::kNone || stage == last) continue;
      last = stage;
      const auto at = std::lower_bound(stages.begin(), stages.end(), stage);
      if (at == stages.end() || *at != stage) stages.insert(at, stage);
    }
    several_ = several_ || stages.size() > 1;
  }
}

std::uint32_t Labels::chunk(DeviceId device, OpId op) const {
  const std::vector<std::uint32_t>& stages = stages_[device];
  const std::uint32_t stage = table_.ops.stage(op);
  if (stage == OpId::kNone) return 0;
  return static_cast<std::uint32_t>(std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
}

std::string Labels::whole(OpId op) const { return text(op, several_); }

std::string Labels::without_stage(OpId op) const { return text(op, false); }

std::string Labels::text(OpId op, bool stage) const {
  const OpName name = table_.ops.name(op);
  const OpKind& kind = table_.ops.kinds()[name.kind];
  std::string before;
  std::string after;
  std::string others;
  for (std::size_t i = 0; i < kind.indices.size(); ++i) {
    const std::string value = std::to_string(name.index[i]);
    switch (kind.indices[i].role) {
      case IndexRole::Stage:
        if (stage) before = value;
        break;
      case IndexRole::Microbatch:
        after = value + after;
        break;
      case IndexRole::Slice:
        if (kind.indices[i].extent > 1) after += "." + value;
        break;
      case IndexRole::Device:
        break;
      case IndexRole::Other:
        others += ":" + value;
        break;
    }
  }
  return before + kind.name + after + others;
}

}  // namespace stave
