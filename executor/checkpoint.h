// Checkpoint: the state of all stages after a step, in a folder of its own, from which a later run goes on bit for bit.
// Written beside and renamed, so that what is there is whole; of several, the two last ones are kept.
//
//   FOLDER/step-00000100/manifest    what was run, and how many stages there are
//   FOLDER/step-00000100/stage-3     the state of stage 3, with its length and hash
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/result.h"
#include "executor/partition.h"
#include "executor/stage/stage.h"

namespace stave {

struct Ranks;

/// The folder's checkpoints are this run's for as long as it lives; when the process ends, however it does, they are free.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(int fd) : fd_(fd) {}
  CheckpointFolder(CheckpointFolder&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  CheckpointFolder& operator=(CheckpointFolder&&) = delete;
  ~CheckpointFolder();

 private:
  int fd_ = -1;
};

/// Makes the folder, if it is not there, and tries whether it can be written to. A run that begins anew must find no
/// checkpoint there, one that goes on must find some, and neither another run that keeps its own there. Errors: those.
Result<CheckpointFolder> prepare_checkpoints(const std::string& folder, bool resumes);

/// How many steps the last checkpoint of a folder has done; 0 if there is none.
std::uint64_t last_checkpoint(const std::string& folder);

/// Writes the state after `steps` steps. Of several ranks all call it, each for its stages, on a file system that they
/// share. `what` says, in lines, all that another run must have alike to go on.
///
/// Errors, on all ranks alike: a folder or file that cannot be written, a full disk, with the rank; what was there stays.
Result<void> write_checkpoint(const std::string& folder, std::uint64_t steps, const std::string& what,
                              const Partition& model, Workload& workload, const Ranks* ranks);

/// Reads the last checkpoint of a folder into the stages that are here, and returns how many steps it has done.
///
/// Errors: no checkpoint there; one of another run (with the first line that differs); a file that is cut short, was
/// changed or belongs to another stage. The stages may be half read then.
Result<std::uint64_t> read_checkpoint(const std::string& folder, const std::string& what, const Partition& model,
                                      Workload& workload);

}  // namespace stave
