// Turns: in a timeline with contention, what had a link or a device until a node could have it.
#pragma once

#include <span>
#include <vector>

#include "core/program.h"
#include "core/rows.h"
#include "core/timeline.h"
#include "scheduler/contention/machine.h"
#include "scheduler/contention/rules.h"

namespace stave {

/// Beside what a node waits for by its program: on each link that it takes first come, first served, the message that had
/// it before; with `blocking` what its devices did before; with `rendezvous` the message before it on its edge. A
/// message that takes a link for no time is nobody's `before` there.
class Turns {
 public:
  struct Turn {
    NodeId before;
    /// When it let go: at its end, or, of a message, when it had left the link. Not after the start of the node.
    Ticks until = 0;
  };

  /// Nothing takes turns.
  Turns() = default;

  /// `timeline` is that of simulate_shared under these. Cost: O(nodes + messages log messages).
  Turns(const Program& program, const Timeline& timeline, const SimulationRules& rules, const Contention& contention);
  /// That of simulate_by.
  Turns(const Program& program, const Timeline& timeline, const Costs& costs, const SimulationRules& rules,
        const ModelPrices* machine);

  bool empty() const { return turns_.items.empty(); }
  std::span<const Turn> operator[](NodeId node) const {
    return empty() ? std::span<const Turn>() : turns_[node.value];
  }

 private:
  /// By node.
  Rows<Turn> turns_;
};

}  // namespace stave
