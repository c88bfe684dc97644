#include "cli/write_table.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "compiler/ast.h"
#include "compiler/cell_text.h"
#include "compiler/parse.h"
#include "compiler/print.h"
#include "compiler/save_table.h"
#include "core/operations.h"

namespace stave {
namespace {

constexpr std::string_view kOtherFormat = "; --format sched writes it";

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

/// The device whose row has a stage, if only one has. Shape: [stage]. False if some stage is in two rows.
bool stages_in_one_row(const Table& table, std::uint32_t stages) {
  std::vector<std::uint32_t> row(stages, UINT32_MAX);
  for (std::uint32_t d = 0; d < table.devices(); ++d)
    for (OpId op : table.on(DeviceId(d))) {
      std::uint32_t& device = row[table.ops.stage(op)];
      if (device != UINT32_MAX && device != d) return false;
      device = d;
    }
  return true;
}

}  // namespace

Result<std::string> csv_of(const Built& built) {
  const OpSet& ops = built.table->ops;
  for (OpId op : built.table->entries)
    if (info(ops.kind(op).operation).pytorch.empty() || !has_short_cell(ops.kind(op)))
      return Failure{fmt::format("PyTorch's tables have no op like `{}`{}", ops.text(op), kOtherFormat)};
  if (!stages_in_one_row(*built.table, built.schedule->stages))
    return Failure{fmt::format("PyTorch's tables have each stage on one device{}", kOtherFormat)};
  std::string result;
  for (std::uint32_t d = 0; d < built.table->devices(); ++d) {
    bool first = true;
    for (OpId op : built.table->on(DeviceId(d))) {
      fmt::format_to(std::back_inserter(result), "{}{}{}{}", first ? "" : ",", ops.stage(op),
                     info(ops.kind(op).operation).pytorch, ops.microbatch(op));
      first = false;
    }
    result += "\n";
  }
  return result;
}

std::string sched_of(Loaded& loaded, const Built& built) {
  const bool is_sched = !loaded.is_csv;
  std::string result = is_sched ? write_sched(loaded.sources, *built.schedule, *built.table, loaded.costs)
                                : heading_of(loaded, *built.schedule);
  result.erase(result.find_last_not_of('\n') + 1);
  if (is_sched) return result + "\n";
  const CellText cell(*built.schedule);
  result += "\n\ntable {\n";
  for (std::uint32_t d = 0; d < built.table->devices(); ++d) {
    fmt::format_to(std::back_inserter(result), "  {}:", d);
    for (OpId op : built.table->on(DeviceId(d))) fmt::format_to(std::back_inserter(result), " {}", cell(op));
    result += "\n";
  }
  return result + "}\n";
}

}  // namespace stave
