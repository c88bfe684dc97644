#include "compiler/ast_builder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/guards.h"
#include "compiler/operators.h"
#include "compiler/rational.h"
#include "core/check.h"

namespace stave {

ExprId AstBuilder::add(Expr expr) {
  std::uint32_t deepest = 0;
  for (const ExprId each : expr.operands) deepest = std::max(deepest, depth(each));
  if (deepest >= kMaxNesting) too_deep(expr.span);
  const ExprId result = ast_.exprs.push_back(std::move(expr));
  depth_.resize(result.value + 1, 1);
  depth_[result.value] = deepest + 1;
  return result;
}

ExprId AstBuilder::add(ExprKind kind, Span span, std::vector<ExprId> operands, Identifier name) {
  Expr result;
  result.kind = kind;
  result.span = span;
  result.operands = std::move(operands);
  result.name = std::move(name);
  return add(std::move(result));
}

ExprId AstBuilder::add_binary(std::string_view op, Span span, std::vector<ExprId> operands) {
  const std::optional<Operator> known = operator_of(op);
  STAVE_CHECK(known, "an operator that the Ast does not know");
  Expr result;
  result.kind = ExprKind::Binary;
  result.op = *known;
  result.span = span;
  result.operands = std::move(operands);
  return add(std::move(result));
}

ExprId AstBuilder::add_number(std::string_view text, Span span) {
  Expr result;
  result.span = span;
  const std::optional<Rational> value = parse_decimal(text);
  if (!value)
    error("number-too-large", span, "this number does not fit into 64 bits",
          "the largest is 9223372036854775807, also above and below the line of a fraction");
  result.value = value.value_or(Rational(0));
  return add(std::move(result));
}

void AstBuilder::too_deep(Span span) {
  if (std::exchange(too_deep_, true)) return;
  error("nested-too-deep", span, "an expression has more than 200 others inside each other",
        "name a part of it with `let`, or use `sum` over a list");
}

void AstBuilder::error(std::string_view kind, Span span, std::string message, std::string fix) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  diagnostic.message = std::move(message);
  diagnostic.primary.span = span;
  diagnostic.fix = std::move(fix);
  sink_.add(std::move(diagnostic));
}

std::string AstBuilder::unquoted(Span span) const {
  const std::string_view quoted = sources_.text(span);
  return std::string(quoted.substr(1, quoted.size() - 2));
}

}  // namespace stave
