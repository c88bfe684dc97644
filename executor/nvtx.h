// Ranges around ops for NVIDIA's profilers, named as PyTorch names the actions of its schedules ("PP:2F5"). Compiled in where
// NVTX's header is found, which needs no library; without a profiler a range costs a few ns. Elsewhere it is nothing.
#pragma once

#include <string>

#include "core/op_set.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define STAVE_WITH_NVTX 1
#endif

namespace stave {

/// "PP:" and the stage, PyTorch's letter and the microbatch, as far as there are such; other ops by their own name.
/// For every op once, before a run: it allocates.
inline std::string nvtx_name(const OpSet& ops, OpId op) {
  const OpKind& kind = ops.kind(op);
  const std::string_view letter = info(kind.operation).pytorch;
  if (letter.empty()) return "PP:" + ops.text(op);
  std::string name = "PP:" + std::to_string(ops.stage(op));
  name += letter;
  return name + std::to_string(ops.microbatch(op));
}

/// A range on the calling thread from here to the end of its scope. `name` must outlive it.
class NvtxRange {
 public:
#ifdef STAVE_WITH_NVTX
  explicit NvtxRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~NvtxRange() { nvtxRangePop(); }
#else
  explicit NvtxRange(const std::string&) {}
#endif
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace stave
