#include "executor/memory.h"

#include <cstring>
#include <new>

#include "executor/aligned.h"

namespace stave {

namespace {

class HostMemory : public Memory {
 public:
  std::byte* allocate(std::size_t bytes) override {
    void* data = ::operator new(round_up(bytes), std::align_val_t(kAlignment));
    std::memset(data, 0, round_up(bytes));
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data) override { ::operator delete(data, std::align_val_t(kAlignment)); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void clear(std::byte* data, std::size_t bytes) override {
    if (bytes != 0) std::memset(data, 0, bytes);
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace stave
