#include "cli/write_table.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "compiler/ast.h"
#include "compiler/cell_text.h"
#include "compiler/parse.h"
#include "compiler/print.h"
#include "core/operations.h"

namespace stave {
namespace {

/// The heading of a file that has a table and nothing but its shape.
std::string heading_of(const Schedule& schedule) {
  std::vector<std::string> devices;
  const OpSet& ops = schedule.ops;
  const KindId forward = ops.find(Operation::Forward);
  for (std::uint32_t s = 0; s < schedule.stages; ++s) {
    const std::array<std::uint32_t, 3> index = {s, 0, 0};
    const OpId op = ops.id(forward, std::span(index).first(ops.kinds()[forward].indices.size()));
    devices.push_back(std::to_string(schedule.device_of[op.value]));
  }
  return fmt::format(
      "schedule {}\n\ndevices {}\nstages {}\nmicrobatches {}\nlet home = [{}]\nplace stage s on device home[s]\n",
      schedule.name, schedule.devices, schedule.stages, schedule.microbatches, fmt::join(devices, ", "));
}

/// The file without what orders it, parameters with the values in force.
std::string rest_of(const Loaded& loaded, const Schedule& schedule) {
  Sources sources;
  const SourceId source = sources.add(loaded.file, loaded.sources[loaded.source].text);
  Diagnostics sink;
  std::optional<Ast> ast = parse(sources, source, sink);
  STAVE_CHECK(ast.has_value(), "a file that was compiled does not parse");
  ast->devices.clear();
  ast->tables.clear();
  const std::vector<NamedText> values = parameters_of(schedule);
  for (std::size_t i = 0; i < values.size() && i < ast->parameters.size(); ++i)
    if (const auto value = parse_value(sources, sources.add("", values[i].value), *ast, sink))
      ast->parameters[i].value = *value;
  return print_ast(*ast);
}

}  // namespace

Result<std::string> csv_of(const Built& built) {
  const OpSet& ops = built.table->ops;
  if (built.schedule->slices > 1) return Failure{"PyTorch's tables have no slices"};
  for (OpId op : built.table->entries)
    if (info(ops.kind(op).operation).pytorch.empty())
      return Failure{fmt::format("PyTorch's tables have no op `{}`; --format sched writes it", ops.kind(op).name)};
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

std::string sched_of(const Loaded& loaded, const Built& built) {
  std::string result =
      loaded.is_csv ? heading_of(*built.schedule) : rest_of(loaded, *built.schedule);
  result.erase(result.find_last_not_of('\n') + 1);
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
