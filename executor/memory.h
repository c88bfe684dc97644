// Memory: the seam for where a device's slots lie and how data gets from one to another there. Host memory by default;
// a GPU's is in executor/cuda/.
#pragma once

#include <cstddef>
#include <memory>

namespace stave {

class Memory {
 public:
  virtual ~Memory() = default;

  /// Zeroed, on a boundary of kAlignment at least. Throws std::bad_alloc.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* data) = 0;
  /// In order with what else the device does: at once on the host, on its stream on a GPU.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// To zeros, likewise.
  virtual void clear(std::byte* data, std::size_t bytes) = 0;
};

/// That of this process. Lives as long as the process.
Memory& host_memory();

/// Bytes of a Memory, which must outlive them.
class MemoryBlock {
 public:
  MemoryBlock(Memory& memory, std::size_t bytes)
      : data_(bytes == 0 ? nullptr : memory.allocate(bytes), Release{&memory}) {}

  std::byte* data() const { return data_.get(); }

 private:
  struct Release {
    Memory* memory;
    void operator()(std::byte* data) const { memory->release(data); }
  };
  std::unique_ptr<std::byte, Release> data_;
};

}  // namespace stave
