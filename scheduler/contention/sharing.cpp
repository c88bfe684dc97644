#include "scheduler/contention/sharing.h"

#include "scheduler/contention/sharing/fair.h"
#include "scheduler/contention/sharing/first_come.h"
#include "scheduler/contention/sharing/own.h"
#include "scheduler/contention/simulation.h"

namespace stave {

namespace {

template <class Links>
Timeline simulate_with(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs,
                       const SimulationRules& rules, const Contention& contention) {
  return Simulation<Links>(program, lengths, costs, rules, contention).run();
}

}  // namespace

constinit const std::array<SharingRule, 3> kSharings = {{
    {"first-come", "one after the other", true, true, simulate_with<FirstCome>},
    {"fair", "at once, each with an equal part", false, false, simulate_with<Fair>},
    {"own", "as if none were shared", false, true, simulate_with<Own>},
}};

}  // namespace stave
