// The reference: the same model on one thread, one microbatch after another: F slice by slice along its route, then I
// and W back, the last slice first. Slow and plain: it is what a run under any schedule is held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "executor/stage/stage.h"

namespace stave {

/// Runs `steps` training steps of a partition, as if every stage had one device and nothing were recomputed; the
/// gradients of the last update stay in the stages. Returns its loss. Where updates stand in the table, microbatches
/// are taken by rising number, as far as the versions that they read are made and their gradients are of the next
/// update. Errors: a model that does not fit the partition; not enough memory; versions that no order of whole
/// microbatches has.
Result<double> run_reference(Workload& workload, const Partition& partition, std::uint64_t steps);

/// Memory that it needs beside the model's parameters. Unit: bytes. `workload` must be configured.
std::uint64_t reference_buffer_bytes(const Workload& workload, const Partition& partition);

/// Whether every stage has one device, where its W (or B) stand by rising microbatch and falling slice: then its
/// gradients must equal the reference's to the last bit. Shape: result[s] for every stage of the schedule's F.
std::vector<bool> accumulates_in_order(const Table& table);

struct Comparison {
  /// Of all stages and replicas.
  std::size_t tensors = 0;
  /// Equal to the last bit.
  std::size_t exact = 0;
  /// Greatest difference of an element over the largest of its tensor, and where.
  double worst = 0;
  std::string worst_tensor;
  /// All stages accumulate in the reference's order, so that everything must be exact.
  bool must_be_exact = false;
  /// What is allowed where things need not be exact.
  double tolerance = 0;
  /// Everything is exact, or need not be and lies within the tolerance.
  bool agrees = false;
};

/// Of an element, relative to the largest of its tensor, where additions are made in another order; and where a GPU makes
/// them, whose products and functions are rounded otherwise too.
inline constexpr double kGradientTolerance = 1e-5;
inline constexpr double kGpuGradientTolerance = 1e-4;

/// Compares the gradients of two workloads of one model, as their last steps left them. Whole numbers must be exact.
Comparison compare_gradients(const Table& table, Workload& run, Workload& reference);

}  // namespace stave
