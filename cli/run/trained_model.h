// TrainedModel: what `stave run` trains with a program, and the same model once more for the sequential run that the
// result is held against.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/pipeline.h"
#include "cli/run/arguments.h"
#include "executor/data.h"
#include "executor/gpu.h"
#include "executor/partition.h"
#include "executor/reference.h"
#include "executor/run.h"
#include "executor/stage/freeze.h"
#include "executor/stage/stage.h"
#include "executor/stage/transformer.h"

namespace stave {

class TrainedModel {
 public:
  /// Both must outlive it; `built` must have its schedule by the first call.
  TrainedModel(const RunArguments& arguments, const Built& built) : arguments_(arguments), built_(built) {}

  /// What `program` trains, which must outlive it, on the CPU or on `gpu`. Errors: no training step; a text that cannot be read; a model that does not fit.
  Result<void> make(const Program& program, Gpu* gpu);
  /// Makes the second model, and says what memory is left for the run. Errors: the model alone needs too much.
  Result<std::uint64_t> make_reference();
  /// After the first step of a transformer, where nothing has been rounded twice yet, and after the last of integers.
  /// Each of several ranks compares its own stages; all then know the whole.
  void compare(const StepReport& step, const Ranks* ranks);

  Workload& workload() const { return *workload_; }
  /// Empty if the ops are sleeps.
  const std::optional<Partition>& partition() const { return partition_; }
  const Program& program() const { return *program_; }
  /// Null but of the transformer, and so is the next.
  const Transformer* transformer() const { return dynamic_cast<const Transformer*>(workload_.get()); }
  const Corpus* corpus() const { return corpus_.get(); }
  /// As the heading shows it.
  const std::string& data() const { return data_; }
  std::uint64_t parameters() const { return parameters_; }
  const std::optional<Comparison>& comparison() const { return comparison_; }
  /// Why the sequential run failed; empty if it did not.
  const std::string& failure() const { return failure_; }

 private:
  FreezeRatios freeze() const;
  Result<void> find_partition();

  const RunArguments& arguments_;
  const Built& built_;
  const Program* program_ = nullptr;
  std::shared_ptr<const Corpus> corpus_;
  /// Empty if the ops are sleeps.
  std::optional<Partition> partition_;
  /// Of the CPU, whose calls run on a GPU's streams; else null.
  std::unique_ptr<Workload> inner_;
  std::unique_ptr<Workload> workload_;
  std::string data_;
  std::uint64_t parameters_ = 0;
  std::unique_ptr<Workload> reference_;
  std::optional<Comparison> comparison_;
  std::string failure_;
};

}  // namespace stave
