// Overlap: how much of the time that messages take is hidden behind computing.
#pragma once

#include "core/program.h"
#include "core/timeline.h"

namespace stave {

struct MessageTime {
  /// From start to end, of all messages.
  Ticks under_way = 0;
  /// In which a lane stood idle while the message that its next op waited for last was under way: a receiving one, or one
  /// that writes the slot it is sent from. Of each message once, so at most `under_way`.
  Ticks exposed = 0;

  /// Share that is hidden; 1 if messages take no time.
  double hidden() const {
    return under_way == 0 ? 1 : 1 - static_cast<double>(exposed) / static_cast<double>(under_way);
  }
};

/// `timeline` must be complete, simulated or measured; that a measured op starts later than it could, because its thread
/// had to be woken, counts as neither. Cost: O(nodes + waits).
MessageTime message_time(const Program& program, const Timeline& timeline);

}  // namespace stave
