// The memory that there is for this process: the counterpart of usable_cores().
#pragma once

#include <cstdint>

namespace stave {

/// That of the host, or what the process's control group may use of it, where that is less. Unit: bytes.
std::uint64_t usable_memory();

}  // namespace stave
