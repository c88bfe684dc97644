// The sleep workload: nothing is computed and every op lasts its cost, so that a wall clock can be held against a
// prediction on any number of cores. Messages may carry bytes, to load a transport with.
#pragma once

#include "executor/stage/stage.h"

namespace stave {

class SleepWorkload : public Workload {
 public:
  explicit SleepWorkload(std::size_t message_bytes = 0) : message_bytes_(message_bytes) {}

  Result<void> configure(const Partition&) override { return {}; }
  void create() override {}
  Stage* stage(StageId, std::uint32_t) override { return nullptr; }
  std::size_t payload_bytes(std::string_view payload, std::uint32_t, std::uint32_t) const override {
    return payload_bytes(payload);
  }
  std::size_t payload_bytes(std::string_view payload) const override { return payload.empty() ? 0 : message_bytes_; }
  std::size_t stash_bytes(StageId) const override { return 0; }
  std::uint64_t parameter_bytes() const override { return 0; }
  bool computes() const override { return false; }

 private:
  std::size_t message_bytes_;
};

}  // namespace stave
