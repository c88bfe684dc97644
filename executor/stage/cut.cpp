#include "executor/stage/cut.h"

#include <algorithm>

namespace stave {

std::vector<std::uint32_t> cut_by_ratio(std::uint32_t total, std::uint32_t parts,
                                        const std::vector<std::uint32_t>& sizes) {
  std::uint64_t sum = 0;
  for (std::uint32_t size : sizes) sum += size;
  const bool given = sizes.size() == parts && sum > 0;
  if (!given) sum = parts;
  std::vector<std::uint32_t> result;
  std::uint32_t before = 0;
  long double so_far = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    so_far += given ? sizes[i] : 1;
    const long double exact = static_cast<long double>(total) * so_far / static_cast<long double>(sum);
    const std::uint32_t end =
        std::clamp(static_cast<std::uint32_t>(exact + 0.5L), before + 1, total - (parts - 1 - i));
    result.push_back(end - before);
    before = end;
  }
  return result;
}

}  // namespace stave
