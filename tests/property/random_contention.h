// Random machines to contend on, for random programs.
#pragma once

#include "core/program.h"
#include "scheduler/contention/machine.h"
#include "tests/property/random_tables.h"

namespace stave::test {

inline Contention random_contention(RandomTables& random, const Program& program) {
  Contention result;
  result.links = random.upto(0, 3);
  for (std::size_t e = 0; e < program.edges.size(); ++e) {
    for (std::uint32_t link = 0; link < result.links; ++link)
      if (random.upto(0, 1) == 1) result.links_of_edge.items.push_back(link);
    result.links_of_edge.end_row();
    result.latency.push_back(random.upto(0, 2));
  }
  // Half of them without slow-downs: those are simulated ahead, where the rules allow it.
  const std::uint32_t slower = random.upto(0, 1) == 0 ? 0 : 250;
  for (std::uint32_t d = 0; d < program.table.devices(); ++d)
    result.slowdown.push_back(1000 + slower * random.upto(0, 5));
  return result;
}

}  // namespace stave::test
