// StageHomes: where the stages of a library of one's own (stave_stage.h) have their memory and their work. The host's by
// default; a GPU's is in executor/cuda/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/ids.h"
#include "executor/memory.h"
#include "executor/stage/stave_stage.h"

namespace stave {

class StageHomes {
 public:
  virtual ~StageHomes() = default;
  /// As stave_stage_table::computes_on has it.
  virtual std::uint32_t where() const { return STAVE_STAGE_ON_HOST; }
  /// Of a device of the schedule. Both live as long as the homes.
  virtual Memory& memory(DeviceId) { return host_memory(); }
  virtual void* stream(DeviceId) { return nullptr; }
  /// From here to leave() this thread's calls are for the device; leave() returns when all they have enqueued is done.
  virtual void enter(DeviceId) {}
  virtual void leave(DeviceId) {}
  /// From any memory to any; returns when it is done.
  virtual void copy(void* to, const void* from, std::size_t bytes) const {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace stave
