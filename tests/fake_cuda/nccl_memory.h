// Memory of the stand-in for NCCL that communicators may register, and what is registered. By environment:
// FAKE_NCCL_NO_MEMORY (there is none), FAKE_NCCL_NO_REGISTER (registering fails), FAKE_NCCL_ALL_REGISTERED (a transfer of
// more than a few bytes must be of registered memory). What is not released at the end of the process is misuse.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace stave::fake {

/// Whether a transfer on it may be from or to these bytes.
bool may_carry(ncclComm_t communicator, const void* data, std::size_t bytes);
/// What it has registered goes with it: rightly so if it is aborted.
void forget(ncclComm_t communicator, bool aborts);

}  // namespace stave::fake
