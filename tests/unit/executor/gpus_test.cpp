// Which GPU each rank has.
#include <doctest/doctest.h>

#include "executor/ranks/gpus.h"

namespace stave {
namespace {

using Gpus = std::vector<std::uint32_t>;

GpusSeen seen(const std::string& host, std::vector<std::string> gpus, std::optional<std::uint32_t> local_rank = {}) {
  return {host, local_rank, std::move(gpus), ""};
}

TEST_CASE("a rank has the GPU of its number on its host, told or counted") {
  const std::vector<std::string> two = {"0000:01", "0000:02"};
  CHECK(assign_gpus({seen("a", two), seen("b", two), seen("a", two), seen("b", two)}).value() == Gpus{0, 0, 1, 1});
  CHECK(assign_gpus({seen("a", two, 1), seen("a", two, 0)}).value() == Gpus{1, 0});
  // More GPUs than ranks.
  CHECK(assign_gpus({seen("a", two)}).value() == Gpus{0});
}

TEST_CASE("where each rank sees a GPU of its own, that is it") {
  CHECK(assign_gpus({seen("a", {"0000:01"}, 0), seen("a", {"0000:02"}, 1)}).value() == Gpus{0, 0});
  CHECK(assign_gpus({seen("a", {"0000:01"}), seen("b", {"0000:01"})}).value() == Gpus{0, 0});
}

TEST_CASE("too few GPUs, or one for two ranks, are refused with host and numbers") {
  const auto refused = [](const std::vector<GpusSeen>& ranks) { return assign_gpus(ranks).failure().message; };
  const std::vector<std::string> two = {"0000:01", "0000:02"};
  CHECK(refused({seen("a", two), seen("a", two), seen("a", two)}) ==
        "host a has 3 ranks, a GPU each, but rank 2 sees 2 GPUs");
  CHECK(refused({seen("a", {"0000:01"}), seen("a", {"0000:01"})}) ==
        "host a has 2 ranks, a GPU each, but rank 1 sees 1 GPU, and it would be that of rank 0 too (0000:01)");
  CHECK(refused({seen("a", two, 1), seen("a", two, 1)}) ==
        "host a has 2 ranks, a GPU each, but rank 1 sees 2 GPUs, and it would be that of rank 0 too (0000:02)");
  GpusSeen none = seen("b", {});
  none.error = "no driver";
  CHECK(refused({seen("a", two), none}) == "host b has 1 rank, a GPU each, but rank 1 sees 0 GPUs: no driver");
}

}  // namespace
}  // namespace stave
