#include "cli/write_table.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "compiler/ast.h"
#include "compiler/cell_text.h"
#include "compiler/expansion.h"
#include "compiler/parse.h"
#include "compiler/print.h"
#include "compiler/save_table.h"
#include "core/operations.h"

namespace stave {
namespace {

/// The file of a CSV table: its shape, and the costs of the command line.
std::string heading_of(Loaded& loaded, const Schedule& schedule) {
  std::vector<std::string> devices;
  const OpSet& ops = schedule.ops;
  const KindId forward = ops.find(Operation::Forward);
  for (std::uint32_t s = 0; s < schedule.stages; ++s) {
    const std::array<std::uint32_t, 3> index = {s, 0, 0};
    const OpId op = ops.id(forward, std::span(index).first(ops.kinds()[forward].indices.size()));
    devices.push_back(std::to_string(schedule.device_of[op.value]));
  }
  const SourceId source = loaded.sources.add(
      "", fmt::format(
              "schedule {}\n\ndevices {}\nstages {}\nmicrobatches {}\nlet home = [{}]\nplace stage s on device home[s]\n",
              schedule.name, schedule.devices, schedule.stages, schedule.microbatches, fmt::join(devices, ", ")));
  if (!loaded.costs) return loaded.sources[source].text;
  Diagnostics sink;
  std::optional<Ast> ast = parse(loaded.sources, source, sink);
  STAVE_CHECK(ast.has_value(), "a heading that was just written does not parse");
  const auto lines = parse_costs(loaded.sources, *loaded.costs, *ast, sink);
  STAVE_CHECK(lines.has_value(), "costs that were read once cannot be read again");
  ast->costs.insert(ast->costs.end(), lines->begin(), lines->end());
  return print_ast(*ast);
}

}  // namespace

Result<std::string> csv_of(const Built& built) {
  // Its readers take every microbatch through every stage.
  if (built.schedule->expansion && built.schedule->expansion->world.routes.given())
    return Failure{"PyTorch's tables have no routes: every microbatch visits every stage; --format sched writes it"};
  Result<std::string> text = write_csv(*built.table);
  if (!text) return Failure{text.failure().message + "; --format sched writes it"};
  return text;
}

std::string sched_of(Loaded& loaded, const Built& built) {
  const bool is_sched = !loaded.is_csv;
  std::string result = is_sched ? write_sched(loaded.sources, *built.schedule, *built.table, loaded.costs)
                                : heading_of(loaded, *built.schedule);
  result.erase(result.find_last_not_of('\n') + 1);
  if (is_sched) return result + "\n";
  const CellText cell(*built.schedule);
  const std::vector<std::uint32_t> block_of = blocks_of(*built.table);
  result += "\n\ntable {\n";
  for (std::uint32_t d = 0; d < built.table->devices(); ++d) {
    fmt::format_to(std::back_inserter(result), "  {}:", d);
    for (std::uint32_t position = built.table->first[d]; position < built.table->first[d + 1]; ++position) {
      const bool overlaps = !block_of.empty() && position > built.table->first[d] && block_of[position] != UINT32_MAX &&
                            block_of[position] == block_of[position - 1];
      fmt::format_to(std::back_inserter(result), "{}{}", overlaps ? "+" : " ", cell(built.table->entries[position]));
    }
    result += "\n";
  }
  return result + "}\n";
}

}  // namespace stave
