#include "executor/ranks/ranks.h"

#include <algorithm>
#include <cstring>

#include "executor/clock.h"

namespace stave {

namespace {

// The rank that knows when a node ran.
std::uint32_t rank_of(const Ranks& ranks, const Program& program, const std::vector<DeviceId>& device, std::uint32_t n) {
  if (!program.is_message(NodeId(n))) return ranks.rank_of(device[n]);
  return ranks.rank_of(program.edges[program.message(NodeId(n)).edge.value].target);
}

template <class Value>
void put(std::string& blob, const Value& value) {
  blob.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Takes a value from the front of a blob; false if it is too short.
template <class Value>
bool take(std::string_view& blob, Value& value) {
  if (blob.size() < sizeof(value)) return false;
  std::memcpy(&value, blob.data(), sizeof(value));
  blob.remove_prefix(sizeof(value));
  return true;
}

Failure misfit(std::uint32_t rank) { return Failure{"rank " + std::to_string(rank) + " sent times of another program"}; }

}  // namespace

Result<Ticks> common_origin(const Ranks& ranks) {
  if (Result<void> synced = ranks.control.sync_clock(); !synced) return synced.failure();
  std::string mine;
  put(mine, now_ns() - ranks.control.clock_offset_ns());
  Result<std::vector<std::string>> all = ranks.control.gather(mine);
  if (!all) return all.failure();
  std::string_view first = all->front();
  Ticks origin = 0;
  if (!take(first, origin)) return misfit(0);
  return origin + ranks.control.clock_offset_ns();
}

Result<void> share_step(const Ranks& ranks, const Program& program, double& loss, Timeline& timeline) {
  std::vector<DeviceId> device(program.table.size());
  for (std::uint32_t d = 0; d < program.table.devices(); ++d)
    for (std::uint32_t i = program.table.first[d]; i < program.table.first[d + 1]; ++i) device[i] = DeviceId(d);
  std::string mine;
  put(mine, loss);
  for (std::uint32_t n = 0; n < program.nodes(); ++n) {
    if (rank_of(ranks, program, device, n) != ranks.rank()) continue;
    put(mine, timeline.start[n]);
    put(mine, timeline.end[n]);
  }
  Result<std::vector<std::string>> all = ranks.control.gather(mine);
  if (!all) return all.failure();
  std::vector<std::string_view> blobs(all->begin(), all->end());
  loss = 0;
  for (std::uint32_t r = 0; r < blobs.size(); ++r) {
    double each = 0;
    if (!take(blobs[r], each)) return misfit(r);
    loss += each;
  }
  for (std::uint32_t n = 0; n < program.nodes(); ++n) {
    const std::uint32_t r = rank_of(ranks, program, device, n);
    if (!take(blobs[r], timeline.start[n]) || !take(blobs[r], timeline.end[n])) return misfit(r);
  }
  return {};
}

Result<void> share_sum(const Ranks& ranks, std::vector<double>& values) {
  std::string mine;
  for (double value : values) put(mine, value);
  Result<std::vector<std::string>> all = ranks.control.gather(mine);
  if (!all) return all.failure();
  std::fill(values.begin(), values.end(), 0);
  for (std::uint32_t r = 0; r < all->size(); ++r) {
    std::string_view blob = (*all)[r];
    for (double& value : values) {
      double each = 0;
      if (!take(blob, each)) return misfit(r);
      value += each;
    }
  }
  return {};
}

Result<void> share_comparison(const Ranks& ranks, Comparison& comparison) {
  std::string mine;
  put(mine, comparison.agrees);
  put(mine, comparison.must_be_exact);
  put(mine, comparison.tensors);
  put(mine, comparison.exact);
  put(mine, comparison.worst);
  mine += comparison.worst_tensor;
  Result<std::vector<std::string>> all = ranks.control.gather(mine);
  if (!all) return all.failure();
  comparison = Comparison();
  comparison.agrees = true;
  for (std::uint32_t r = 0; r < all->size(); ++r) {
    std::string_view blob = (*all)[r];
    Comparison each;
    if (!take(blob, each.agrees) || !take(blob, each.must_be_exact) || !take(blob, each.tensors) ||
        !take(blob, each.exact) || !take(blob, each.worst))
      return misfit(r);
    comparison.agrees = comparison.agrees && each.agrees;
    comparison.must_be_exact = each.must_be_exact;
    comparison.tensors += each.tensors;
    comparison.exact += each.exact;
    if (each.worst < comparison.worst || blob.empty()) continue;
    comparison.worst = each.worst;
    comparison.worst_tensor = blob;
  }
  return {};
}

}  // namespace stave
