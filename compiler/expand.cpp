#include <fmt/format.h>

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/evaluate.h"
#include "compiler/expansion.h"
#include "compiler/nearest.h"
#include "compiler/needs.h"
#include "compiler/origins.h"
#include "compiler/pair_costs.h"
#include "compiler/price_lines.h"
#include "compiler/world.h"
#include "compiler/order_from_lists.h"
#include "compiler/order_from_table.h"

namespace stave {

namespace {

/// Steps of loops and functions that an op may take on average.
constexpr std::uint64_t kStepsPerOp = 256;

/// The first argument that names no parameter.
std::optional<Failure> unknown_argument(const Code& code, const std::vector<Argument>& arguments) {
  std::vector<std::string_view> known;
  for (const ParameterCode& parameter : code.parameters) known.push_back(parameter.name);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name;
    for (std::size_t k = 0; k < i; ++k)
      if (arguments[k].name == name) return Failure{fmt::format("parameter `{}` is given twice", name)};
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = nearest_name(name, known);
    std::string hint = known.empty() ? "it has none" : fmt::format("its parameters are {}", fmt::join(known, ", "));
    if (!nearest.empty()) hint = fmt::format("did you mean `{}`?", nearest);
    return Failure{fmt::format("schedule `{}` has no parameter `{}`: {}", code.name, name, hint)};
  }
  return std::nullopt;
}

/// Whether the parameters are allowed. Errors: those of the conditions; a diagnostic, and Stop.
bool allowed(Evaluator& evaluator) {
  const Code& code = evaluator.code();
  for (const RequireCode& require : code.requires_) {
    if (evaluator.truth(require.condition)) continue;
    Diagnostic diagnostic;
    diagnostic.kind = "require";
    diagnostic.message = require.text.empty() ? "the schedule does not allow these parameters" : require.text;
    diagnostic.primary = {code.spans[require.condition], "this does not hold"};
    const std::string parameters = evaluator.parameters();
    if (!parameters.empty()) diagnostic.notes.push_back("with " + parameters);
    evaluator.report(std::move(diagnostic));
    return false;
  }
  return true;
}

void write_orders(Evaluator& evaluator, Expansion& expansion, Schedule& schedule) {
  schedule.orders.resize(schedule.devices);
  std::vector<bool>& run = expansion.world.runs;
  run.assign(expansion.world.ops.kinds().size(), false);
  if (evaluator.code().table != nullptr) {
    order_from_table(evaluator, expansion, schedule.orders, run);
  } else {
    OrderWriter writer(evaluator, expansion);
    bool wrong = false;
    for (std::uint32_t d = 0; d < schedule.devices; ++d) {
      try {
        schedule.orders[DeviceId(d)] = writer.write(d);
      } catch (const Stop&) {
        // The next device may have an error of its own; the same one is not said again.
        wrong = true;
        evaluator.leave_device();
        evaluator.leave_loops();
        if (evaluator.out_of_budget()) break;
      }
    }
    if (wrong) throw Stop{};
    run = writer.run();
  }
  for (std::uint32_t k = 0; k < run.size(); ++k) {
    if (!run[k] || schedule.costs.duration[KindId(k)].given()) continue;
    const OpCode& op = evaluator.code().ops[k];
    evaluator.fail("no-cost", op.name_span,
                   schedule.costs.priced_pairs ? fmt::format("`{0}` runs, and the costs given have none for it; `--cost {0}=...` gives one", op.name)
                                               : fmt::format("`{}` has no cost", op.name),
                   "declared here");
  }
}

}  // namespace

Expanded expand(const Compiled& compiled, const std::vector<Argument>& arguments, Diagnostics& sink,
                const Prices* prices) {
  const Code& code = *compiled.code;
  Expanded result;
  if (std::optional<Failure> failure = unknown_argument(code, arguments)) {
    result.outcome = Outcome::WrongArgument;
    result.failure = std::move(*failure);
    return result;
  }
  for (const UseCode& each : code.uses) sink.used_at(each.source, each.use);
  auto expansion = std::make_shared<Expansion>();
  expansion->code = compiled.code;
  expansion->arguments = arguments;
  try {
    Evaluator evaluator(code, sink);
    set_parameters(evaluator, expansion->arguments);
    for (const ParameterCode& parameter : code.parameters)
      expansion->parameters.push_back({parameter.name, evaluator.get(parameter.slot).text()});
    if (!allowed(evaluator)) {
      result.outcome = Outcome::Refused;
      return result;
    }
    Schedule schedule;
    schedule.name = code.name;
    schedule.devices = evaluator.devices();
    schedule.stages = evaluator.stages();
    schedule.microbatches = evaluator.count(SettingKind::Microbatches);
    schedule.slices = evaluator.count(SettingKind::Slices);
    schedule.sizes = evaluator.sizes();
    schedule.payloads = code.payloads;
    evaluator.finish_lets();
    expansion->world = make_world(evaluator);
    const World& world = expansion->world;
    evaluator.add_budget(kStepsPerOp * world.ops.size());
    schedule.ops = world.ops;
    schedule.exists = world.exists;
    schedule.device_of = devices_of_ops(world);
    schedule.costs = price_lines(evaluator, world, schedule, prices);
    write_orders(evaluator, *expansion, schedule);
    schedule.costs.pairs = pair_costs(evaluator, world, schedule.costs, schedule.orders);
    schedule.needs = find_needs(evaluator, world);
    schedule.origins = make_origins(expansion);
    schedule.expansion = std::move(expansion);
    result.schedule = std::move(schedule);
  } catch (const Stop&) {
    result.outcome = Outcome::Rejected;
  }
  return result;
}

}  // namespace stave
