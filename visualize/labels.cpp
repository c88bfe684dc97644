#include "visualize/labels.h"

#include <algorithm>

namespace stave {

Labels::Labels(const Table& table) : table_(table), stages_(table.devices()), block_of_(blocks_of(table)) {
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

OpId Labels::partner(std::uint32_t position) const {
  if (block_of_.empty() || block_of_[position] == UINT32_MAX || position + 1 == table_.size()) return OpId();
  // The entries of a reduction stand on different devices.
  const auto block = table_.blocks[block_of_[position]];
  const bool pairs = block[0] == position && block[1] == position + 1 &&
                     table_.device_of(position) == table_.device_of(position + 1);
  return pairs ? table_.entries[position + 1] : OpId();
}

template <class Text>
std::string Labels::joined(std::uint32_t position, const Text& text) const {
  const OpId other = partner(position);
  return text(table_.entries[position]) + (other.valid() ? "+" + text(other) : "");
}

std::string Labels::whole(std::uint32_t position) const {
  return joined(position, [&](OpId op) { return text(op, several_); });
}

std::vector<std::string> Labels::of(std::uint32_t position) const {
  return {whole(position), joined(position, [&](OpId op) { return text(op, false); }),
          joined(position, [&](OpId op) { return table_.ops.kind(op).name; })};
}

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
      case IndexRole::Replica:
        break;
      case IndexRole::Other:
        others += ":" + value;
        break;
    }
  }
  return before + kind.name + after + others;
}

}  // namespace stave
