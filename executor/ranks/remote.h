// Remote: the two halves of a message between processes, and the sums of gradients that lie in several.
// When they are due is the walker's business, as with messages in one process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"
#include "executor/aligned.h"
#include "executor/device.h"
#include "executor/plan.h"
#include "executor/ranks/ranks.h"

namespace stave {

class Remote {
 public:
  /// All must outlive it; `devices` has null for those of other processes. `plan_hash` goes with every message.
  /// Throws std::bad_alloc.
  Remote(const Program& program, const Plan& plan, Workload& workload, std::vector<std::unique_ptr<Device>>& devices,
         const Ranks& ranks, std::uint64_t plan_hash);

  /// Sends what `message` carries in step `step`, ready at `ready`. Empty, or what was wrong.
  std::string send(NodeId message, std::uint64_t step, Ticks ready);
  /// Receives it into its slot, and says when it was ready. Empty, or what was wrong.
  std::string receive(NodeId message, std::uint64_t step, Ticks& ready);

  /// Sums the gradients of the replicas of a stage, added in the order of their devices as one process adds them; all
  /// have the sum after it. Called in every process that has one, for the same stages in one order. `ready` becomes
  /// the latest of all. Empty, or what was wrong.
  std::string reduce(StageId s, std::uint64_t step, Ticks& ready);
  /// The same for the tied gradients of a group of stages, whose replicas are alike; all replicas have the sum after it.
  /// Called in every process, for the same groups in one order.
  std::string reduce_tied(std::span<const StageId> group, std::uint64_t step);

 private:
  MessageHeader header(std::uint64_t step, std::uint32_t channel, Ticks ready) const;
  Channel reductions_from(DeviceId source, DeviceId target) const;
  std::string send_gradients(DeviceId from, DeviceId to, std::uint64_t step, Ticks ready, const GradientView& gradients);
  // `ready` becomes the later of itself and of what the sender says.
  std::string receive_gradients(DeviceId from, DeviceId to, std::uint64_t step, Ticks& ready, std::span<std::byte> into);
  std::string check(const MessageHeader& found, const MessageHeader& due) const;

  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  std::vector<std::unique_ptr<Device>>& devices_;
  const Ranks& ranks_;
  const std::uint64_t plan_hash_;
  /// Gradients of another process's stage.
  AlignedBytes arrived_;
};

}  // namespace stave
