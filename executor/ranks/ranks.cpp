#include "executor/ranks/ranks.h"

#include <algorithm>
#include <cstring>

#include "executor/clock.h"

namespace stave {

namespace {

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

Result<void> share_step(const Ranks& ranks, const Program& program, double& loss, int& signal, Ticks& makespan_ns,
                        Timeline* timeline) {
  std::vector<DeviceId> device(program.table.size());
  for (std::uint32_t d = 0; d < program.table.devices(); ++d)
    for (std::uint32_t i = program.table.first[d]; i < program.table.first[d + 1]; ++i) device[i] = DeviceId(d);
  // The ranks that know when a node began; the second also when it ended.
  const auto ranks_of = [&](std::uint32_t n) {
    if (!program.is_message(NodeId(n))) return std::pair(ranks.rank_of(device[n]), ranks.rank_of(device[n]));
    const Edge& edge = program.edges[program.message(NodeId(n)).edge.value];
    return std::pair(ranks.rank_of(edge.source), ranks.rank_of(edge.target));
  };
  const std::uint32_t nodes = timeline == nullptr ? 0 : program.nodes();
  std::string mine;
  put(mine, loss);
  put(mine, signal);
  put(mine, makespan_ns);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const auto [begins, ends] = ranks_of(n);
    if (begins == ranks.rank() || ends == ranks.rank()) put(mine, timeline->start[n]);
    if (ends == ranks.rank()) put(mine, timeline->end[n]);
  }
  Result<std::vector<std::string>> all = ranks.control.gather(mine);
  if (!all) return all.failure();
  std::vector<std::string_view> blobs(all->begin(), all->end());
  loss = 0;
  signal = 0;
  for (std::uint32_t r = 0; r < blobs.size(); ++r) {
    double each = 0;
    int caught = 0;
    Ticks longest = 0;
    if (!take(blobs[r], each) || !take(blobs[r], caught) || !take(blobs[r], longest)) return misfit(r);
    loss += each;
    if (signal == 0) signal = caught;
    makespan_ns = std::max(makespan_ns, longest);
  }
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const auto [begins, ends] = ranks_of(n);
    Ticks sent = 0;
    if (begins != ends && !take(blobs[begins], sent)) return misfit(begins);
    if (!take(blobs[ends], timeline->start[n]) || !take(blobs[ends], timeline->end[n])) return misfit(ends);
    timeline->start[n] = std::max(timeline->start[n], sent);
    timeline->end[n] = std::max(timeline->end[n], timeline->start[n]);
  }
  return {};
}

Result<void> agree_on_checkpoint(const Ranks& ranks, std::uint64_t done) {
  std::string mine;
  put(mine, done);
  Result<std::vector<std::string>> all = ranks.control.gather(mine);
  if (!all) return all.failure();
  for (std::uint32_t r = 0; r < all->size(); ++r) {
    std::string_view blob = (*all)[r];
    std::uint64_t each = 0;
    if (!take(blob, each)) return misfit(r);
    if (each != done)
      return Failure{"rank " + std::to_string(r) + " finds the checkpoint of step " + std::to_string(each) + ", rank " +
                     std::to_string(ranks.rank()) + " that of step " + std::to_string(done) +
                     ": their folder must be one that all hosts share"};
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
  const double tolerance = comparison.tolerance;
  comparison = Comparison();
  comparison.tolerance = tolerance;
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
