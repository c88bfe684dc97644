#include "cli/measure/table_diff.h"

#include <algorithm>

namespace stave {

TableDiff compare_tables(const Table& first, const Table& second) {
  const Table* const tables[2] = {&first, &second};
  TableDiff result;
  result.devices.resize(std::max(first.devices(), second.devices()));
  for (std::uint32_t d = 0; d < result.devices.size(); ++d) {
    TableDiff::Device& device = result.devices[d];
    for (int which : {0, 1})
      if (d < tables[which]->devices())
        device.ops[which] = static_cast<std::uint32_t>(tables[which]->on(DeviceId(d)).size());
    const auto text = [&](int which, std::uint32_t at) {
      return at < device.ops[which] ? tables[which]->ops.text(tables[which]->on(DeviceId(d))[at]) : std::string();
    };
    for (std::uint32_t at = 0; at < std::max(device.ops[0], device.ops[1]) && device.same; ++at) {
      device.at = at;
      for (int which : {0, 1}) device.text[which] = text(which, at);
      device.same = device.text[0] == device.text[1];
    }
    if (!device.same) ++result.different;
  }
  return result;
}

}  // namespace stave
