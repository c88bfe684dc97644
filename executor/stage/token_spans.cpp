#include "executor/stage/token_spans.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace stave {

namespace {

/// `total` cut into parts as `weights` are to each other, all alike if there are none; every part is at least 1.
std::vector<std::uint32_t> cut(std::uint32_t total, std::uint32_t parts, const std::vector<std::uint32_t>& weights) {
  std::uint64_t sum = 0;
  for (std::uint32_t weight : weights) sum += weight;
  const bool given = weights.size() == parts && sum > 0;
  if (!given) sum = parts;
  std::vector<std::uint32_t> result;
  std::uint32_t before = 0;
  long double so_far = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    so_far += given ? weights[i] : 1;
    const long double exact = static_cast<long double>(total) * so_far / static_cast<long double>(sum);
    const std::uint32_t end =
        std::clamp(static_cast<std::uint32_t>(exact + 0.5L), before + 1, total - (parts - 1 - i));
    result.push_back(end - before);
    before = end;
  }
  return result;
}

}  // namespace

Result<TokenSpans> TokenSpans::make(std::uint32_t sequence, const Partition& partition) {
  TokenSpans result;
  result.slices_ = partition.slices;
  if (partition.slices > sequence)
    return Failure{"the schedule cuts a microbatch into " + std::to_string(partition.slices) +
                   " slices, but a sequence has only " + std::to_string(sequence) + " tokens"};
  const Sizes& sizes = partition.sizes;
  const bool by_size = sizes.microbatches.size() == partition.microbatches;
  const std::uint32_t greatest = by_size ? *std::ranges::max_element(sizes.microbatches) : 0;
  std::map<std::pair<std::uint32_t, std::size_t>, std::size_t> known;
  std::set<TokenSpan> different;
  for (std::uint32_t m = 0; m < partition.microbatches; ++m) {
    std::uint32_t length = sequence;
    if (by_size && greatest > 0) {
      const double share = static_cast<double>(sizes.microbatches[m]) / static_cast<double>(greatest);
      length = std::max(partition.slices, static_cast<std::uint32_t>(share * sequence + 0.5));
    }
    const std::size_t list = sizes.slices.size() == partition.microbatches ? m : 0;
    result.all_tokens_ += length;
    const auto [at, added] = known.try_emplace({length, list}, known.size());
    result.row_of_.push_back(at->second);
    if (!added) continue;
    static const std::vector<std::uint32_t> kEqual;
    std::uint32_t first = 0;
    for (std::uint32_t count : cut(length, partition.slices, sizes.slices.empty() ? kEqual : sizes.slices[list])) {
      result.spans_.push_back({first, count, first + count < length});
      different.insert(result.spans_.back());
      first += count;
    }
  }
  result.different_.assign(different.begin(), different.end());
  return result;
}

}  // namespace stave
