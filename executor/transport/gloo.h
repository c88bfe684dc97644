// Ranks over Gloo: point to point between any two, by TCP, without a launcher. A killed peer fails a call at once; one
// that is stopped does not, so that whoever watches the ranks must cancel().
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "executor/control/control.h"
#include "executor/transport/transport.h"

namespace stave {

/// Connects this rank with all others, which call it too. `address` is that of this host by which they reach it.
/// Errors: an address that is none of this host; a rank that does not answer.
Result<std::unique_ptr<Transport>> connect_gloo(Control& control, const std::string& address);

}  // namespace stave
