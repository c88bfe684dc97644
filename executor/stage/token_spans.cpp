#include "executor/stage/token_spans.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "executor/stage/cut.h"

namespace stave {

Result<TokenSpans> TokenSpans::make(std::uint32_t sequence, const Partition& partition) {
  TokenSpans result;
  result.slices_ = partition.slices;
  if (partition.slices > sequence)
    return Failure{"the schedule cuts a microbatch into " + std::to_string(partition.slices) +
                   " slices, but a sequence has only " + std::to_string(sequence) + " tokens"};
  const Sizes& sizes = partition.sizes;
  const bool by_row = sizes.slices.size() == partition.microbatches;
  std::vector<std::uint64_t> tokens(sizes.microbatches.begin(), sizes.microbatches.end());
  if (tokens.empty() && by_row)
    for (const std::vector<std::uint32_t>& row : sizes.slices)
      tokens.push_back(std::accumulate(row.begin(), row.end(), std::uint64_t{0}));
  const bool by_size = tokens.size() == partition.microbatches;
  const std::uint64_t greatest = by_size ? *std::ranges::max_element(tokens) : 0;
  static const std::vector<std::uint32_t> kEqual;
  std::map<std::vector<std::uint32_t>, std::size_t> known;
  std::set<TokenSpan> different;
  for (std::uint32_t m = 0; m < partition.microbatches; ++m) {
    const std::uint32_t slices = partition.slices_of(m);
    std::uint32_t length = sequence;
    if (by_size && greatest > 0) {
      const double share = static_cast<double>(tokens[m]) / static_cast<double>(greatest);
      length = std::max(slices, static_cast<std::uint32_t>(share * sequence + 0.5));
    }
    result.all_tokens_ += length;
    result.length_.push_back(length);
    std::vector<std::uint32_t> counts =
        cut_by_ratio(length, slices, by_row ? sizes.slices[m] : sizes.slices.empty() ? kEqual : sizes.slices.front());
    const auto [at, added] = known.try_emplace(std::move(counts), result.spans_.size());
    result.first_.push_back(at->second);
    if (!added) continue;
    std::uint32_t first = 0;
    for (std::uint32_t count : at->first) {
      result.spans_.push_back({first, count, first + count < length});
      different.insert(result.spans_.back());
      first += count;
    }
  }
  result.different_.assign(different.begin(), different.end());
  return result;
}

}  // namespace stave
