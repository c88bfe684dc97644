#include "compiler/resolve.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/builtins.h"
#include "compiler/nearest.h"
#include "compiler/operators.h"
#include "compiler/print.h"
#include "core/check.h"

namespace stave {

namespace {

/// Most expressions inside each other.
constexpr std::uint32_t kMaxDepth = 1000;

constexpr std::string_view kMessageName = "message";

TermKind term_of(Operator op) {
  switch (op) {
    case Operator::Add: return TermKind::Add;
    case Operator::Subtract: return TermKind::Subtract;
    case Operator::Multiply: return TermKind::Multiply;
    case Operator::Divide: return TermKind::Divide;
    case Operator::Div: return TermKind::Div;
    case Operator::Mod: return TermKind::Mod;
    case Operator::Equal: return TermKind::Equal;
    case Operator::Unequal: return TermKind::Unequal;
    case Operator::Less: return TermKind::Less;
    case Operator::LessEqual: return TermKind::LessEqual;
    case Operator::Greater: return TermKind::Greater;
    case Operator::GreaterEqual: return TermKind::GreaterEqual;
    case Operator::And: return TermKind::And;
    case Operator::Or: return TermKind::Or;
  }
  STAVE_CHECK(false, "an operator without a term");
  return TermKind::Add;
}

std::size_t setting_number(std::string_view name) {
  return static_cast<std::size_t>(std::find(kSettings.begin(), kSettings.end(), name) - kSettings.begin());
}

}  // namespace

void Resolver::error(std::string_view kind, Span span, std::string message, std::string label, Label other,
                     std::string fix) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  diagnostic.message = std::move(message);
  diagnostic.primary = {span, std::move(label)};
  if (other.span.valid()) diagnostic.labels.push_back(std::move(other));
  diagnostic.fix = std::move(fix);
  sink_.add(std::move(diagnostic));
}

void Resolver::unknown(const Identifier& name, Speaks speaks, const char* what) {
  std::vector<std::string_view> known;
  for (const Local& local : locals_) known.push_back(local.name);
  for (const auto& [global, binding] : globals_) known.push_back(global);
  for (const Builtin& builtin : kBuiltins) known.push_back(builtin.name);
  known.insert(known.end(), kSettings.begin(), kSettings.end());
  if (speaks != Speaks::Plain) known.push_back(kMessageName);
  if (speaks == Speaks::OfResult)
    for (const MetricInfo& metric : kMetrics) known.push_back(metric.name);
  const std::string_view nearest = nearest_name(name.name, known);
  std::string fix = nearest.empty() ? "" : fmt::format("did you mean `{}`?", nearest);
  const auto own = [&](const Parameter& parameter) { return parameter.name.name == name.name; };
  if (brought_in_ && std::any_of(ast_->parameters.begin(), ast_->parameters.end(), own))
    fix = "the parameters of a file are not brought in: the file that uses it must have them";
  error("unknown-name", name.span, fmt::format("there is no {} called `{}`", what, name.name), "unknown", {},
        std::move(fix));
}

const Resolver::Binding* Resolver::find(std::string_view name) const {
  for (std::size_t i = locals_.size(); i-- > 0;)
    if (locals_[i].name == name) return &locals_[i].binding;
  const auto found = globals_.find(name);
  return found == globals_.end() ? nullptr : &found->second;
}

void Resolver::refuse_hiding(const Identifier& name, bool may_be_others) {
  const Binding* other = find(name.name);
  if (other != nullptr) {
    // What is brought in cannot know the names of the files that use it.
    if (may_be_others && other->span.source != name.span.source) return;
    const char* what = other->meaning == Meaning::Op ? "the letter of an op" : "a name";
    error("name-hides", name.span, fmt::format("`{}` is {} already", name.name, what), "a new name is needed here",
          {other->span, "already in view"});
  } else if (find_builtin(name.name) != nullptr) {
    error("name-hides", name.span, fmt::format("`{}` is a function already", name.name),
          "a new name is needed here");
  } else if (find_metric(name.name) != nullptr) {
    error("name-hides", name.span, fmt::format("`{}` is a metric already", name.name),
          "a new name is needed here");
  } else if (name.name == kMessageName) {
    error("name-hides", name.span, "`message` stands for the cost of a message", "a new name is needed here");
  }
}

bool Resolver::refuse_hidden_op(const Identifier& op) {
  const Binding* other = find(op.name);
  if (other == nullptr) return false;
  error("name-hides", other->span, fmt::format("`{}` is the letter of an op already", op.name),
        "a new name is needed here", {op.span, "declared here"});
  return true;
}

void Resolver::declare_global(const Identifier& name, Meaning meaning, std::uint32_t number) {
  refuse_hiding(name, false);
  globals_.insert({name.name, {meaning, number, name.span}});
}

void Resolver::declare(const Identifier& name, Meaning meaning, std::uint32_t number) {
  refuse_hiding(name, brought_in_);
  locals_.push_back({name.name, {meaning, number, name.span}});
}

std::uint32_t Resolver::new_slot(const std::string& name) {
  code_.slots.push_back(name);
  return static_cast<std::uint32_t>(code_.slots.size() - 1);
}

std::uint32_t Resolver::declare_slot(const Identifier& name) {
  const std::uint32_t slot = new_slot(name.name);
  declare(name, Meaning::Variable, slot);
  return slot;
}

TermId Resolver::make(TermKind kind, Span span, std::uint32_t target, const std::vector<TermId>& operands) {
  for (TermId operand : operands)
    if (!operand.valid()) return TermId();
  Term term;
  term.kind = kind;
  term.target = target;
  term.first = static_cast<std::uint32_t>(code_.operands.size());
  term.count = static_cast<std::uint32_t>(operands.size());
  code_.operands.insert(code_.operands.end(), operands.begin(), operands.end());
  code_.spans.push_back(span);
  return code_.terms.push_back(term);
}

bool Resolver::deep(Span span, std::uint32_t depth) {
  if (calls_ != nullptr) calls_->depth = std::max(calls_->depth, depth);
  if (depth <= kMaxDepth) return false;
  if (!reported_depth_) {
    error("nested-too-deep", span, fmt::format("more than {} expressions inside each other", kMaxDepth));
    reported_depth_ = true;
  }
  return true;
}

bool Resolver::chains(const Expr& expr) {
  const auto compares = [](const Expr& each) {
    return each.kind == ExprKind::Binary && info(each.op).binding == stave::Binding::Comparison;
  };
  if (!compares(expr) || expr.op == Operator::Equal || expr.op == Operator::Unequal) return false;
  const Expr& left = (*ast_)[expr.operands[0]];
  if (!compares(left)) return false;
  const std::string first = print_expression(*ast_, expr.operands[0]);
  const std::string second = fmt::format("{} {} {}", print_expression(*ast_, left.operands[1]), info(expr.op).text,
                                         print_expression(*ast_, expr.operands[1]));
  constexpr std::size_t kMost = 80;
  const bool fits = first.size() + second.size() <= kMost;
  error("wrong-kind", expr.span, "comparisons do not chain: what is left of the second is a condition, and no number",
        "", {}, fits ? fmt::format("write `{} and {}`", first, second) : "write `a < b and b < c`");
  return true;
}

TermId Resolver::value(ExprId id, Speaks speaks) { return resolve(id, speaks, 0); }

TermId Resolver::resolve(ExprId id, Speaks speaks, std::uint32_t depth) {
  if (!id.valid()) return TermId();
  const Expr& expr = (*ast_)[id];
  if (deep(expr.span, depth)) return TermId();
  const auto operand = [&](std::size_t i) { return resolve(expr.operands[i], speaks, depth + 1); };
  switch (expr.kind) {
    case ExprKind::Number: {
      const TermId term = make(TermKind::Number, expr.span, 0, {});
      code_.terms[term].value = expr.value;
      return term;
    }
    case ExprKind::Name: return resolve_name(expr, speaks, depth);
    case ExprKind::Call: return resolve_call(expr, speaks, depth);
    case ExprKind::Next:
      error("misplaced", expr.span, "`next` stands for an index of an op, and only there");
      return TermId();
    case ExprKind::Star:
      error("misplaced", expr.span, "`*` stands for the indices of an op, and only there");
      return TermId();
    case ExprKind::Negate: return make(TermKind::Negate, expr.span, 0, {operand(0)});
    case ExprKind::Not: return make(TermKind::Not, expr.span, 0, {operand(0)});
    case ExprKind::Binary: {
      if (chains(expr)) return TermId();
      const TermId left = operand(0);
      return make(term_of(expr.op), expr.span, 0, {left, operand(1)});
    }
    case ExprKind::Conditional: {
      const TermId yes = operand(0);
      const TermId condition = operand(1);
      return make(TermKind::Conditional, expr.span, 0, {yes, condition, operand(2)});
    }
    case ExprKind::Element: {
      const TermId list = operand(0);
      return make(TermKind::Element, expr.span, 0, {list, operand(1)});
    }
    case ExprKind::Range: {
      const TermId from = operand(0);
      return make(TermKind::Range, expr.span, 0, {from, operand(1)});
    }
    case ExprKind::List: {
      std::vector<TermId> items;
      for (std::size_t i = 0; i < expr.operands.size(); ++i) items.push_back(operand(i));
      return make(TermKind::List, expr.span, 0, items);
    }
    case ExprKind::Each: {
      const TermId list = operand(1);
      const std::size_t outside = view();
      const std::uint32_t slot = declare_slot(expr.name);
      const TermId item = operand(0);
      leave(outside);
      return make(TermKind::Each, expr.span, slot, {item, list});
    }
    case ExprKind::With: return resolve_pair_cost(expr, speaks);
  }
  STAVE_CHECK(false, "an expression of no kind");
  return TermId();
}

/// `(F with B)` in an `expect`: the two letters.
TermId Resolver::resolve_pair_cost(const Expr& expr, Speaks speaks) {
  std::vector<TermId> letters;
  for (ExprId id : expr.operands) {
    const Expr& letter = (*ast_)[id];
    if (speaks == Speaks::Plain || letter.kind != ExprKind::Name) {
      error("op-as-value", letter.span,
            speaks == Speaks::Plain ? "an overlapped pair is no value here"
                                    : "the cost of a pair is asked for by the letters of its ops, as `(F with B)`");
      return TermId();
    }
    const std::uint32_t number = op_number(letter.name);
    if (number == kNoSlot) return TermId();
    letters.push_back(make(TermKind::OpName, letter.span, number, {}));
  }
  return make(TermKind::PairCost, expr.span, 0, letters);
}

TermId Resolver::resolve_name(const Expr& expr, Speaks speaks, std::uint32_t depth) {
  const std::string& name = expr.name.name;
  const std::size_t setting = setting_number(name);
  if (setting < kSettings.size())
    return make(TermKind::Setting, expr.span, static_cast<std::uint32_t>(setting), {});
  if (const Binding* binding = find(name)) {
    switch (binding->meaning) {
      case Meaning::Variable: return make(TermKind::Slot, expr.span, binding->number, {});
      case Meaning::Let:
        if (calls_ != nullptr) calls_->lets.push_back(binding->number);
        return make(TermKind::Let, expr.span, binding->number, {});
      case Meaning::Function:
        if (code_.functions[binding->number].slots.empty()) return resolve_function(expr, *binding, speaks, false, depth);
        error("function-name", expr.span, fmt::format("`{}` is a function: its values are missing", name), "", {},
              fmt::format("write `{}(...)`", name));
        return TermId();
      case Meaning::Op:
        if (speaks != Speaks::Plain) return make(TermKind::Letter, expr.span, binding->number, {});
        error("op-as-value", expr.span, fmt::format("`{}` is an op, and a value is needed here", name));
        return TermId();
    }
  }
  if (speaks == Speaks::OfResult) {
    if (const MetricInfo* metric = find_metric(name)) return resolve_metric(expr, *metric, depth);
  } else if (find_metric(name) != nullptr) {
    error("misplaced", expr.span, fmt::format("`{}` is known of the result, and so in an `expect` only", name));
    return TermId();
  }
  if (speaks != Speaks::Plain)
    if (const std::optional<std::uint32_t> number = payload(name))
      return make(TermKind::Message, expr.span, *number, {});
  if (find_builtin(name) != nullptr) {
    error("function-name", expr.span, fmt::format("`{}` is a function: its values are missing", name), "", {},
          fmt::format("write `{}(...)`", name));
    return TermId();
  }
  unknown(expr.name, speaks, "name");
  return TermId();
}

std::optional<std::uint32_t> Resolver::payload(const std::string& name) const {
  if (name == kMessageName) return kNoSlot;
  const auto found = std::find(code_.payloads.begin() + 1, code_.payloads.end(), name);
  if (found == code_.payloads.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - code_.payloads.begin());
}

TermId Resolver::resolve_call(const Expr& expr, Speaks speaks, std::uint32_t depth) {
  const std::string& name = expr.name.name;
  if (const Binding* binding = find(name)) {
    switch (binding->meaning) {
      case Meaning::Function: return resolve_function(expr, *binding, speaks, false, depth);
      case Meaning::Op:
        if (speaks != Speaks::Plain) return op_term(expr, binding->number, TermKind::CostOf, speaks, depth);
        error("op-as-value", expr.span, fmt::format("`{}` is an op, and a value is needed here", name));
        return TermId();
      case Meaning::Variable:
      case Meaning::Let:
        error("not-a-function", expr.name.span, fmt::format("`{}` is no function but a value", name), "",
              {binding->span, "given here"});
        return TermId();
    }
  }
  if (const Builtin* builtin = find_builtin(name)) {
    const std::size_t count = expr.operands.size();
    if (count < builtin->least || count > builtin->most) {
      error("argument-count", expr.span,
            fmt::format("`{}` takes {}{} value{}, not {}", name, builtin->most == 255 ? "at least " : "",
                        builtin->most == 2 ? "1 or 2" : "1", builtin->most == 2 ? "s" : "", count));
      return TermId();
    }
    std::vector<TermId> operands;
    for (ExprId operand : expr.operands) operands.push_back(resolve(operand, speaks, depth + 1));
    return make(builtin->term, expr.span, 0, operands);
  }
  if (const std::optional<std::uint32_t> number = payload(name); number && speaks != Speaks::Plain) {
    if (expr.operands.size() != 2) {
      error("argument-count", expr.span,
            fmt::format("a message has two devices, the one that sends it and the one that receives it, not {}",
                        expr.operands.size()));
      return TermId();
    }
    const TermId source = resolve(expr.operands[0], speaks, depth + 1);
    return make(TermKind::Message, expr.span, *number, {source, resolve(expr.operands[1], speaks, depth + 1)});
  }
  if (const MetricInfo* metric = find_metric(name)) {
    if (speaks == Speaks::OfResult) return resolve_metric(expr, *metric, depth);
    error("misplaced", expr.span, fmt::format("`{}` is known of the result, and so in an `expect` only", name));
    return TermId();
  }
  unknown(expr.name, speaks, "function");
  return TermId();
}

TermId Resolver::resolve_function(const Expr& expr, const Binding& binding, Speaks speaks, bool as_op,
                                  std::uint32_t depth) {
  const std::size_t needed = code_.functions[binding.number].slots.size();
  if (code_.functions[binding.number].gives_op != as_op) {
    error("op-as-value", expr.span, fmt::format("`{}` is an op, and a value is needed here", expr.name.name), "",
          {binding.span, "given here"});
    return TermId();
  }
  if (expr.operands.size() != needed) {
    error("argument-count", expr.span,
          fmt::format("`{}` takes {} value{}, not {}", expr.name.name, needed, needed == 1 ? "" : "s",
                      expr.operands.size()),
          "", {binding.span, "given here"});
    return TermId();
  }
  if (calls_ != nullptr) calls_->functions.push_back(binding.number);
  std::vector<TermId> operands;
  for (ExprId operand : expr.operands) operands.push_back(resolve(operand, speaks, depth + 1));
  return make(TermKind::Call, expr.span, binding.number, operands);
}

TermId Resolver::resolve_metric(const Expr& expr, const MetricInfo& metric, std::uint32_t depth) {
  const std::size_t count = expr.operands.size();
  if (count < metric.least || count > metric.most) {
    const std::string needed = metric.least == metric.most ? fmt::format("{}", metric.least)
                                                           : fmt::format("{} or {}", metric.least, metric.most);
    error("argument-count", expr.span,
          fmt::format("`{}` takes {} value{}, not {}", metric.name, needed, needed == "1" ? "" : "s", count));
    return TermId();
  }
  std::vector<TermId> operands;
  for (std::size_t i = 0; i < count; ++i) {
    const Expr& operand = (*ast_)[expr.operands[i]];
    switch (metric.arguments[i]) {
      case MetricArgument::None: break;
      case MetricArgument::Device:
      case MetricArgument::Stage:
        operands.push_back(resolve(expr.operands[i], Speaks::OfResult, depth + 1));
        break;
      case MetricArgument::Op: {
        if (operand.kind != ExprKind::Name) {
          error("argument-kind", operand.span, fmt::format("`{}` takes the letter of an op", metric.name));
          return TermId();
        }
        const std::uint32_t number = op_number(operand.name);
        if (number == kNoSlot) return TermId();
        operands.push_back(make(TermKind::OpName, operand.span, number, {}));
        break;
      }
      case MetricArgument::Cause: {
        const auto cause = std::ranges::find(kIdleCauses, operand.name.name, &IdleCauseInfo::name);
        if (operand.kind != ExprKind::Name || cause == kIdleCauses.end()) {
          std::vector<std::string_view> known;
          for (const IdleCauseInfo& each : kIdleCauses) known.push_back(each.name);
          const std::string_view nearest = nearest_name(operand.name.name, known);
          error("unknown-name", operand.span, "there is no such cause of idle time", "unknown", {},
                nearest.empty() ? fmt::format("the causes are {}", fmt::join(known, ", "))
                                : fmt::format("did you mean `{}`?", nearest));
          return TermId();
        }
        operands.push_back(
            make(TermKind::Cause, operand.span, static_cast<std::uint32_t>(cause - kIdleCauses.begin()), {}));
        break;
      }
    }
  }
  return make(TermKind::Metric, expr.span, static_cast<std::uint32_t>(metric.metric), operands);
}

std::size_t Resolver::slice_index(const OpCode& op) {
  for (std::size_t i = 0; i < op.indices.size(); ++i)
    if (op.indices[i].role == IndexRole::Slice) return i;
  return op.indices.size();
}

bool Resolver::index_count_fits(const OpCode& op, std::size_t count) const {
  return count == op.indices.size() || (slice_index(op) < op.indices.size() && count + 1 == op.indices.size());
}

std::uint32_t Resolver::op_number(const Identifier& name) {
  const Binding* binding = find(name.name);
  if (binding != nullptr && binding->meaning == Meaning::Op) return binding->number;
  std::vector<std::string_view> known;
  for (const OpCode& op : code_.ops) known.push_back(op.name);
  const std::string_view nearest = nearest_name(name.name, known);
  error("unknown-name", name.span, fmt::format("there is no op called `{}`", name.name), "unknown", {},
        nearest.empty() ? fmt::format("the ops are {}", fmt::join(known, ", "))
                        : fmt::format("did you mean `{}`?", nearest));
  return kNoSlot;
}

TermId Resolver::op_term(const Expr& expr, std::uint32_t number, TermKind kind, Speaks speaks, std::uint32_t depth) {
  const OpCode& op = code_.ops[number];
  if (!index_count_fits(op, expr.operands.size())) {
    std::vector<std::string_view> names;
    for (const IndexCode& index : op.indices) names.push_back(index.name);
    error("argument-count", expr.span,
          fmt::format("`{}` has {} ind{}, not {}", op.name, names.size(), names.size() == 1 ? "ex" : "ices",
                      expr.operands.size()),
          "", {op.name_span, fmt::format("its indices are {}", fmt::join(names, ", "))});
    return TermId();
  }
  const std::size_t left_out = expr.operands.size() == op.indices.size() ? op.indices.size() : slice_index(op);
  std::vector<TermId> operands;
  for (ExprId id : expr.operands) {
    if (operands.size() == left_out) operands.push_back(make(TermKind::Number, expr.span, 0, {}));
    const Expr& index = (*ast_)[id];
    if (kind == TermKind::Op && index.kind == ExprKind::Next) {
      operands.push_back(make(TermKind::Next, index.span, 0, {}));
    } else if (kind == TermKind::Op && index.kind == ExprKind::Star) {
      operands.push_back(make(TermKind::Star, index.span, 0, {}));
    } else {
      operands.push_back(resolve(id, speaks, depth + 1));
    }
  }
  if (operands.size() == left_out && left_out < op.indices.size())
    operands.push_back(make(TermKind::Number, expr.span, 0, {}));
  return make(kind, expr.span, number, operands);
}

bool Resolver::is_op(const Ast& ast, ExprId id, int depth) const {
  constexpr int kDeepest = 300;
  if (!id.valid() || depth > kDeepest) return false;
  const Expr& expr = ast[id];
  switch (expr.kind) {
    case ExprKind::With: return true;
    case ExprKind::Conditional: return is_op(ast, expr.operands[0], depth + 1);
    case ExprKind::Name:
    case ExprKind::Call: {
      const Binding* binding = find(expr.name.name);
      if (binding != nullptr && binding->meaning != Meaning::Function) return binding->meaning == Meaning::Op;
      // A function may be declared after the let that calls it.
      const auto function = function_values_.find(expr.name.name);
      if (function != function_values_.end()) return is_op(*function->second.ast, function->second.value, depth + 1);
      return binding != nullptr && code_.functions[binding->number].gives_op;
    }
    case ExprKind::Number:
    case ExprKind::Next:
    case ExprKind::Star:
    case ExprKind::Negate:
    case ExprKind::Not:
    case ExprKind::Binary:
    case ExprKind::Element:
    case ExprKind::List:
    case ExprKind::Range:
    case ExprKind::Each: return false;
  }
  return false;
}

TermId Resolver::op(ExprId id) { return resolve_op(id, 0); }

TermId Resolver::resolve_op(ExprId id, std::uint32_t depth) {
  if (!id.valid()) return TermId();
  const Expr& expr = (*ast_)[id];
  if (deep(expr.span, depth)) return TermId();
  if (expr.kind == ExprKind::With) {
    const TermId first = resolve_op(expr.operands[0], depth + 1);
    return make(TermKind::Pair, expr.span, 0, {first, resolve_op(expr.operands[1], depth + 1)});
  }
  if (expr.kind == ExprKind::Conditional) {
    const TermId yes = resolve_op(expr.operands[0], depth + 1);
    const TermId condition = resolve(expr.operands[1], Speaks::Plain, depth + 1);
    return make(TermKind::Conditional, expr.span, 0, {yes, condition, resolve_op(expr.operands[2], depth + 1)});
  }
  const bool named = expr.kind == ExprKind::Name || expr.kind == ExprKind::Call;
  const Binding* binding = named ? find(expr.name.name) : nullptr;
  if (binding == nullptr) {
    if (named) {
      op_number(expr.name);
    } else {
      error("not-an-op", expr.span, "an op is needed here, as `F(0, next)`");
    }
    return TermId();
  }
  if (binding->meaning == Meaning::Function) {
    if (code_.functions[binding->number].gives_op) return resolve_function(expr, *binding, Speaks::Plain, true, depth);
    error("not-an-op", expr.span, fmt::format("`{}` is a value, and an op is needed here", expr.name.name), "",
          {binding->span, "given here"});
    return TermId();
  }
  if (binding->meaning != Meaning::Op) {
    error("not-an-op", expr.span, fmt::format("`{}` is a value, and an op is needed here", expr.name.name), "",
          {binding->span, "given here"});
    return TermId();
  }
  return op_term(expr, binding->number, TermKind::Op, Speaks::Plain, depth);
}

std::uint32_t Resolver::needed_op(ExprId id, std::vector<TermId>& indices) {
  const Expr& expr = (*ast_)[id];
  const std::uint32_t number = op_number(expr.name);
  if (number == kNoSlot) return kNoSlot;
  const TermId term = op_term(expr, number, TermKind::Op, Speaks::Plain, 0);
  if (!term.valid()) return kNoSlot;
  for (std::uint32_t i = 0; i < code_[term].count; ++i) {
    indices.push_back(code_.operand(code_[term], i));
    if (code_[indices.back()].kind == TermKind::Next) {
      error("misplaced", code_.spans[indices.back()], "`next` has a meaning in an order only");
      return kNoSlot;
    }
  }
  return number;
}

}  // namespace stave
