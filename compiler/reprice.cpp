#include "compiler/reprice.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/code.h"
#include "compiler/evaluate.h"
#include "compiler/expansion.h"
#include "compiler/order_from_lists.h"
#include "compiler/pair_costs.h"
#include "compiler/price_lines.h"

namespace stave {

namespace {

TermId add_term(Code& code, Term term, Span span) {
  code.terms.push_back(std::move(term));
  return code.spans.push_back(span);
}

/// The slot of a new parameter.
std::uint32_t add_parameter(Code& code, const std::string& name, Rational otherwise) {
  ParameterCode parameter;
  parameter.name = name;
  parameter.span = code.name_span;
  parameter.slot = static_cast<std::uint32_t>(code.slots.size());
  code.slots.push_back(name);
  Term value;
  value.value = otherwise;
  parameter.value = add_term(code, std::move(value), code.name_span);
  code.parameters.push_back(std::move(parameter));
  return code.parameters.back().slot;
}

}  // namespace

Compiled with_parameter(const Compiled& compiled, const std::string& name, Rational otherwise) {
  auto code = std::make_shared<Code>(*compiled.code);
  add_parameter(*code, name, otherwise);
  return Compiled{std::move(code)};
}

std::optional<Compiled> with_cost_parameter(const Compiled& compiled, const std::string& name) {
  auto code = std::make_shared<Code>(*compiled.code);
  ValueCode line;
  const auto op =
      std::find_if(code->ops.begin(), code->ops.end(), [&](const OpCode& each) { return each.name == name; });
  if (op != code->ops.end()) {
    line.op = static_cast<std::uint32_t>(op - code->ops.begin());
  } else if (name == "message") {
    line.target = ValueCode::Target::AllMessages;
    line.message = name;
  } else if (std::find(code->payloads.begin() + 1, code->payloads.end(), name) != code->payloads.end()) {
    line.target = ValueCode::Target::Message;
    line.message = name;
  } else {
    return std::nullopt;
  }
  Term value;
  value.kind = TermKind::Slot;
  value.target = add_parameter(*code, name, Rational(1));
  line.target_span = code->name_span;
  line.value = add_term(*code, std::move(value), code->name_span);
  // Behind them stands what the command line says: prices come in between.
  code->own_costs = std::min(code->own_costs, code->costs.size());
  code->costs.push_back(std::move(line));
  return Compiled{std::move(code)};
}

std::optional<CostSet> price_again(const Compiled& compiled, const std::vector<Argument>& arguments,
                                   const Schedule& schedule, const Prices* prices, Diagnostics& sink) {
  const World& world = schedule.expansion->world;
  try {
    Evaluator evaluator(*compiled.code, sink);
    set_parameters(evaluator, arguments);
    evaluator.sizes();
    evaluator.finish_lets();
    evaluator.add_budget(world.ops.size());
    CostSet costs = price_lines(evaluator, world, schedule, prices);
    costs.pairs = pair_costs(evaluator, world, costs, schedule.orders);
    return costs;
  } catch (const Stop&) {
    return std::nullopt;
  }
}

}  // namespace stave
