#include "executor/ranks/gpus.h"

#include <algorithm>
#include <map>
#include <utility>

#include "executor/control/wire.h"

namespace stave {

namespace {

std::string count(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string pack(const GpusSeen& seen) {
  BodyWriter body;
  body.text(seen.host);
  body.number(seen.local_rank ? *seen.local_rank + std::uint64_t{1} : 0);
  body.text(seen.error);
  for (const std::string& gpu : seen.gpus) body.text(gpu);
  return body.take();
}

bool unpack(const std::string& bytes, GpusSeen& seen) {
  BodyReader body(bytes);
  std::uint64_t local_rank = 0;
  if (!body.text(seen.host) || !body.number(local_rank) || !body.text(seen.error)) return false;
  if (local_rank != 0) seen.local_rank = static_cast<std::uint32_t>(local_rank - 1);
  for (std::string gpu; body.text(gpu);) seen.gpus.push_back(gpu);
  return true;
}

}  // namespace

Result<std::vector<std::uint32_t>> assign_gpus(const std::vector<GpusSeen>& ranks) {
  std::map<std::string, std::size_t> on_host;
  for (const GpusSeen& each : ranks) ++on_host[each.host];
  std::map<std::string, std::uint32_t> counted;
  std::map<std::pair<std::string, std::string>, std::uint32_t> owner;
  std::vector<std::uint32_t> result;
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    const GpusSeen& each = ranks[r];
    const std::uint32_t local = each.local_rank.value_or(counted[each.host]);
    ++counted[each.host];
    const std::uint32_t gpu = each.gpus.size() == 1 ? 0 : local;
    const std::string has = "host " + each.host + " has " + count(on_host[each.host], "rank") + ", a GPU each, but rank " +
                            std::to_string(r) + " sees " + count(each.gpus.size(), "GPU");
    if (gpu >= each.gpus.size()) return Failure{has + (each.error.empty() ? "" : ": " + each.error)};
    const auto [at, is_first] = owner.try_emplace({each.host, each.gpus[gpu]}, r);
    if (!is_first)
      return Failure{has + ", and it would be that of rank " + std::to_string(at->second) + " too (" + each.gpus[gpu] + ")"};
    result.push_back(gpu);
  }
  return result;
}

Result<std::uint32_t> find_gpu(const Ranks& ranks, const GpusSeen& mine) {
  const Result<std::vector<std::string>> all = ranks.control.gather(pack(mine));
  if (!all) return all.failure();
  std::vector<GpusSeen> seen(all.value().size());
  for (std::uint32_t r = 0; r < seen.size(); ++r)
    if (!unpack(all.value()[r], seen[r])) return Failure{"rank " + std::to_string(r) + " does not say which GPUs it sees"};
  const Result<std::vector<std::uint32_t>> gpus = assign_gpus(seen);
  if (!gpus) return gpus.failure();
  return gpus.value()[ranks.rank()];
}

}  // namespace stave
