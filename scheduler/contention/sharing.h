// Sharing: the rules by which messages share a link that several of them want at once. A rule is a file of sharing/ and a row
// of kSharings.
//
// The class of a rule is asked when a message may start but for its links, when it begins to move, and when it has moved:
//
//     ask(message, edge, go)                      calls go(message) for each that may move now
//     move(message, edge, length, now, plan)      calls plan(message, end) for each whose end is known, or another than before
//     leave(message, edge, now, go, plan)         calls both
//
// It says by kWaits whether a message may wait for its turn, and by kPlansAgain whether an end may become another one. Messages
// that may start at one time ask in the issue order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/program.h"
#include "core/ticks.h"
#include "core/timeline.h"
#include "scheduler/costs.h"

namespace stave {

struct Contention;
struct SimulationRules;

/// As indices of kSharings.
enum class Sharing : std::uint8_t { FirstCome, Fair, Own };

struct SharingRule {
  std::string_view name;
  /// What messages do, for help.
  std::string_view words;
  /// One message has a link until the next one may have it (turns.h).
  bool takes_turns = false;
  /// When a message begins to move it is known when it has moved, by what ahead.h does of the rule.
  bool is_known_ahead = false;
  /// simulate_shared() by this rule, event by event.
  Timeline (*simulate)(const Program&, const std::vector<Ticks>& lengths, const Costs&, const SimulationRules&,
                       const Contention&);
};

/// The first is that of links of which nothing is said.
extern const std::array<SharingRule, 3> kSharings;

inline const SharingRule& info(Sharing sharing) { return kSharings[static_cast<std::size_t>(sharing)]; }

}  // namespace stave
