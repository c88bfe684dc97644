// run: one training run of a Program on the CPU, all devices in this process or each in one of several, each lane a
// thread that walks its ops in order. What the ops compute is the Workload's; predicting the run, and printing about it, is for others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/result.h"
#include "core/timeline.h"
#include "executor/clock.h"
#include "executor/rendezvous.h"
#include "executor/stage/stage.h"

namespace stave {

struct Ranks;

struct StepReport {
  /// Counted from 0.
  std::uint64_t step = 0;
  /// Mean over the step's tokens, in nats; 0 if nothing is trained.
  double loss = 0;
  std::uint64_t tokens = 0;
  /// Of all gradients, before they are clipped; 0 if it is not measured.
  double gradient_norm = 0;
  /// Of the wall clock, with the optimizer.
  double seconds = 0;
  /// From the start of the first op to the end of the last, on the clock of the run.
  Ticks makespan_ns = 0;
  /// 1 less the sum of the lengths of what computes over makespan times devices; a pair computes once. Not known of a step
  /// whose ops were not timed: one that was replayed as a graph.
  std::optional<double> bubble;
};

struct RunOptions {
  Clock clock = Clock::Wall;
  std::uint64_t steps = 1;
  /// Price of every node, in ns; empty is 0. A message is under way for as long; an op that is run as a wait (a
  /// declared one, any op of the sleep workload) lasts as long. The prices of other ops are not used.
  std::vector<Ticks> cost_ns;
  /// For every position, in ns, what its device takes after the op before it on its lane to change to it; empty is 0.
  std::vector<Ticks> setup_ns;
  /// Most memory for parameters and buffers together.
  std::uint64_t memory_bound_bytes = std::uint64_t{4} << 30;
  /// Processes of the run on this host, which share its memory.
  std::uint32_t processes_here = 1;
  /// Measures the norm of all fp32 gradients at the end of a step; and scales them down to this norm if it is greater,
  /// where it is above 0.
  bool measures_norm = false;
  double clip_norm = 0;
  /// Where checkpoints are, and after how many steps one is written (the last always), if any; 0 writes none. A resumed
  /// run begins with the last one there, which must be of a run that is alike in `what`.
  std::string checkpoints;
  std::uint64_t checkpoint_every = 0;
  bool resumes = false;
  std::string what;
  /// The processes among which the devices lie, one each; null if all are here.
  const Ranks* ranks = nullptr;
  /// Of everything that the processes must have alike; goes with every message between them.
  std::uint64_t plan_hash = 0;
  /// The signal that is to end the run, 0 while there is none; called from any thread. Where checkpoints are written the
  /// run ends after the step under way, with one, and so do all ranks; else between two ops.
  std::function<int()> interrupt;
  /// Called after every step, from a thread of the run, while all others wait.
  std::function<void(const StepReport&)> on_step;
  /// Of several ranks: called, on one of them, when one does not get on, with who waits for whom; then the run ends.
  std::function<void(const std::string&)> on_warning;
};

/// What the ops of a kind on a stage typically take.
struct TypicalLength {
  KindId kind;
  /// Not valid for ops without a stage.
  StageId stage;
  /// Of an overlapped pair, whose first op is of `kind` on `stage`: those of the second. Not valid of an op by itself.
  KindId with;
  StageId with_stage;
  /// The mean: the ops of a device follow one another, so what they take adds up.
  Ticks length_ns = 0;
  std::uint32_t samples = 0;
};

/// What the messages of a payload on a directed edge typically take: the mean.
struct TypicalMessage {
  std::uint16_t payload = 0;
  DeviceId source;
  DeviceId target;
  Ticks length_ns = 0;
};

struct RunReport {
  /// One step, measured: that of median makespan among the last ones. Ticks are ns, the unit is us; time 0 is the start
  /// of its first op or message.
  Timeline timeline;
  std::uint64_t timeline_step = 0;
  Ticks makespan_ns = 0;
  double bubble = 0;
  /// Over the half of the same last steps whose makespans are nearest the median, by kind, then stage.
  std::vector<TypicalLength> lengths;
  /// Over all of them, of every position the least length.
  std::vector<Ticks> shortest_ns;
  /// The same of messages, by payload, then devices.
  std::vector<TypicalMessage> messages;
  /// Of every step finished.
  std::vector<double> losses;
  /// Kinds of ops that were run as a wait of their cost, because only the schedule knows what they are.
  std::vector<std::string> declared;
  std::uint64_t memory_bytes = 0;
  bool interrupted = false;
  /// Of the interrupt; 0 if there was none.
  int signal = 0;
  /// Steps that the checkpoint it began with had done.
  std::uint64_t resumed_at = 0;
  /// Only of a program lowered unchecked: who waits for whom. The timeline is then empty.
  std::optional<Deadlock> deadlock;
};

/// Runs `options.steps` training steps of `program` and leaves the stages in `workload` as the last one left them.
///
/// A compute op starts when the one before it on its device and everything it waits for have ended; a message when the
/// one before it on its edge has started and its producer and everything it waits for have ended. Messages hold up
/// neither end. A program lowered unchecked (no `order`) is run as one strict queue a device, in which a send waits for
/// its receive; if that stops, the report says why. With several processes, all call this alike, and all get the whole
/// report, for a step that all have finished.
/// Errors: a program that contradicts itself or is no training step; a model that does not fit it or the memory; an op
/// that fails or finds other data than it must, with device and op; a loss that is not finite; another process that
/// failed or is gone. Never hangs.
Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options);

}  // namespace stave
