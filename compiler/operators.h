// The one table of the operators of expressions: how they are written and how tightly they bind.
// What they compute is evaluate.cpp's; the grammar repeats their ranks, and a test holds the two together.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "compiler/ast.h"

namespace stave {

/// How tightly an expression holds together; the higher, the tighter.
enum class Binding : std::uint8_t { Conditional, Or, And, Not, Comparison, Range, Sum, Product, Sign, Element, Atom };

struct OperatorInfo {
  Operator op = Operator::Add;
  std::string_view text;
  /// All are read from left to right.
  Binding binding = Binding::Sum;
};

inline constexpr std::array<OperatorInfo, 14> kOperators = {{
    {Operator::Add, "+", Binding::Sum},
    {Operator::Subtract, "-", Binding::Sum},
    {Operator::Multiply, "*", Binding::Product},
    {Operator::Divide, "/", Binding::Product},
    {Operator::Div, "div", Binding::Product},
    {Operator::Mod, "mod", Binding::Product},
    {Operator::Equal, "==", Binding::Comparison},
    {Operator::Unequal, "!=", Binding::Comparison},
    {Operator::Less, "<", Binding::Comparison},
    {Operator::LessEqual, "<=", Binding::Comparison},
    {Operator::Greater, ">", Binding::Comparison},
    {Operator::GreaterEqual, ">=", Binding::Comparison},
    {Operator::And, "and", Binding::And},
    {Operator::Or, "or", Binding::Or},
}};

constexpr const OperatorInfo& info(Operator op) { return kOperators[static_cast<std::size_t>(op)]; }

constexpr std::optional<Operator> operator_of(std::string_view text) {
  for (const OperatorInfo& each : kOperators)
    if (each.text == text) return each.op;
  return std::nullopt;
}

}  // namespace stave
