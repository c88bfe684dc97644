// Standard: the size of the work by which competitors are compared. A file that cuts the model into V stages a device,
// or a microbatch into slices, still gives each of them a slot: its costs are scaled, so that the forwards of one
// microbatch through the whole model take all competitors the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/axis.h"
#include "cli/compare/competitor.h"
#include "compiler/schedule.h"
#include "scheduler/compare/work.h"

namespace stave {

struct Standard {
  std::uint32_t devices = 0;
  std::uint32_t microbatches = 0;
  Work work;
  std::size_t competitor = 0;
};

/// That of the first competitor with one stage on each device and one slice; if there is none, of the first that has
/// forwards. None if none has. `at` has the number of a value of each axis.
/// Cost: an expansion of each competitor up to that one.
std::optional<Standard> find_standard(const std::vector<Competitor>& competitors, const std::vector<Axis>& axes,
                                      const std::vector<std::size_t>& at);

/// What a schedule runs.
struct Size {
  std::uint32_t devices = 0;
  std::uint32_t microbatches = 0;
  std::optional<Work> work;
};

/// Why its makespan says nothing beside the standard's: it trains nothing, it has other devices or microbatches, or,
/// where costs are `priced` as they are for share_of, the forwards of a microbatch take far from as long. Empty if it
/// does say something.
std::string other_work(const Size& size, const Standard& standard, bool priced);

/// What the times, the sizes and the numbers of activations of a schedule are multiplied with.
struct Share {
  Rational time = 1;
  Rational size = 1;
  Rational activations = 1;
};

/// By the forwards of a microbatch: their time, and their number. 1 without a standard, where there are none, and where
/// there are fewer than in the standard: then a microbatch skips a part of the model, and that is its gain.
/// `priced`: by a costs file or a model on a cluster, whose times and sizes are those of the smaller parts already.
Share share_of(const std::optional<Work>& work, const std::optional<Work>& standard, bool priced);

}  // namespace stave
