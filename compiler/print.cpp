#include "compiler/print.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

#include "compiler/operators.h"
#include "core/check.h"

namespace stave {

namespace {

constexpr Binding tighter(Binding binding) { return static_cast<Binding>(static_cast<int>(binding) + 1); }

class Printer {
 public:
  explicit Printer(const Ast& ast) : ast_(ast) {}

  std::string file() {
    if (!ast_.name.name.empty()) {
      out_ += "schedule " + ast_.name.name;
      for (std::size_t i = 0; i < ast_.parameters.size(); ++i)
        out_ +=
            fmt::format("{}{} = {}", i == 0 ? "(" : ", ", ast_.parameters[i].name.name, text(ast_.parameters[i].value));
      out_ += ast_.parameters.empty() ? "\n" : ")\n";
    }
    section();
    for (const Use& use : ast_.uses) line(use.is_file ? fmt::format("use \"{}\"", use.name) : "use " + use.name);
    for (const Require& each : ast_.requires_)
      line("require " + text(each.condition) + (each.text.empty() ? "" : fmt::format(" \"{}\"", each.text)));
    section();
    for (const Setting& each : ast_.settings) line(each.name.name + " " + text(each.value));
    for (const Place& each : ast_.places)
      line(fmt::format("place stage {}{} on device {}", each.stage.name,
                       each.microbatch.name.empty() ? "" : " of microbatch " + each.microbatch.name,
                       text(each.device)));
    for (const Route& each : ast_.routes)
      line(fmt::format("route microbatch {} = {}", each.microbatch.name, text(each.stages)));
    section();
    for (const LetDecl& each : ast_.lets) line(let(each));
    section();
    for (const OpDecl& each : ast_.ops) op(each);
    for (const AddedNeed& each : ast_.added_needs) line(text(each.op) + needs(each.needs));
    section();
    for (const ValueLine& each : ast_.costs) line("cost " + value_line(each));
    for (const ValueLine& each : ast_.memory) line("memory " + value_line(each, "+"));
    for (const ValueLine& each : ast_.freezes) line("freeze " + value_line(each));
    for (const OnDevice& each : ast_.devices) on_device(each);
    for (const TableDecl& each : ast_.tables) table(each);
    section();
    for (const Expect& each : ast_.expects) expect(each);
    return std::move(out_);
  }

  std::string text(ExprId id) const { return expression(id, Binding::Conditional); }

 private:
  void line(const std::string& text) { out_ += std::string(2 * indent_, ' ') + text + "\n"; }

  /// An empty line before what follows, but never two and none at the top.
  void section() {
    if (!out_.empty() && !out_.ends_with("\n\n")) out_ += "\n";
  }

  static Binding binding(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::Conditional:
        return Binding::Conditional;
      case ExprKind::Not:
        return Binding::Not;
      case ExprKind::Range:
        return Binding::Range;
      case ExprKind::Negate:
        return Binding::Sign;
      case ExprKind::Element:
        return Binding::Element;
      case ExprKind::Binary:
        return info(expr.op).binding;
      case ExprKind::Number:
        return print_number(expr.value).find('/') == std::string::npos ? Binding::Atom : Binding::Product;
      case ExprKind::Name:
      case ExprKind::Next:
      case ExprKind::Star:
      case ExprKind::Call:
      case ExprKind::List:
      case ExprKind::Each:
      case ExprKind::With:
        return Binding::Atom;
    }
    return Binding::Atom;
  }

  std::string expression(ExprId id, Binding least) const {
    const Expr& expr = ast_[id];
    const std::string inner = bare(expr);
    return binding(expr) < least ? "(" + inner + ")" : inner;
  }

  std::string bare(const Expr& expr) const {
    const auto operand = [&](std::size_t i, Binding least) { return expression(expr.operands[i], least); };
    switch (expr.kind) {
      case ExprKind::Number:
        return print_number(expr.value);
      case ExprKind::Name:
        return expr.name.name;
      case ExprKind::Next:
        return "next";
      case ExprKind::Star:
        return "*";
      case ExprKind::Negate:
        return "-" + operand(0, Binding::Sign);
      case ExprKind::Not:
        return "not " + operand(0, Binding::Not);
      case ExprKind::Binary: {
        const OperatorInfo& op = info(expr.op);
        return fmt::format("{} {} {}", operand(0, op.binding), op.text, operand(1, tighter(op.binding)));
      }
      case ExprKind::Conditional:
        return fmt::format("{} if {} else {}", operand(0, Binding::Or), operand(1, Binding::Or),
                           operand(2, Binding::Conditional));
      case ExprKind::Call:
        return expr.name.name + "(" + arguments(expr) + ")";
      case ExprKind::Element:
        return operand(0, Binding::Element) + "[" + operand(1, Binding::Conditional) + "]";
      case ExprKind::List: {
        std::string items;
        for (const ExprId each : expr.operands) items += (items.empty() ? "" : ", ") + text(each);
        return "[" + items + "]";
      }
      case ExprKind::Range:
        return operand(0, Binding::Range) + " .. " + operand(1, tighter(Binding::Range));
      case ExprKind::Each:
        return "[" + each(expr) + "]";
      case ExprKind::With:
        return "(" + pair(expr) + ")";
    }
    return "";
  }

  /// `e for i in list`: in brackets a list, and without them the only argument of a call.
  std::string each(const Expr& expr) const {
    return fmt::format("{} for {} in {}", text(expr.operands[0]), expr.name.name, text(expr.operands[1]));
  }

  std::string pair(const Expr& expr) const { return text(expr.operands[0]) + " with " + text(expr.operands[1]); }

  std::string arguments(const Expr& call) const {
    if (call.operands.size() == 1 && ast_[call.operands[0]].kind == ExprKind::Each) return each(ast_[call.operands[0]]);
    std::string result;
    for (const ExprId each : call.operands) result += (result.empty() ? "" : ", ") + text(each);
    return result;
  }

  /// An op statement or the target of a cost: a pair without parentheses.
  std::string op_or_pair(ExprId id) const {
    const Expr& expr = ast_[id];
    return expr.kind == ExprKind::With ? pair(expr) : text(id);
  }

  static std::string names(const std::vector<Identifier>& all) {
    std::string result;
    for (const Identifier& each : all) result += (result.empty() ? "" : ", ") + each.name;
    return result;
  }

  std::string let(const LetDecl& decl) const {
    return fmt::format("let {}{} = {}", decl.name.name, decl.is_function ? "(" + names(decl.parameters) + ")" : "",
                       text(decl.value));
  }

  std::string needs(const std::vector<Need>& all) const {
    std::string result;
    bool after = false;
    for (const Need& each : all) {
      if (!each.message.name.empty())
        result += fmt::format("  receives {} from {}", each.message.name, text(each.op));
      else
        result += (after ? ", " : "  after ") + text(each.op);
      after = each.message.name.empty();
    }
    return result;
  }

  void op(const OpDecl& decl) {
    std::string result = "op " + decl.name.name + "(";
    for (std::size_t i = 0; i < decl.parameters.size(); ++i)
      result +=
          fmt::format("{}{} in {}", i == 0 ? "" : ", ", decl.parameters[i].name.name, text(decl.parameters[i].list));
    result += ")";
    for (std::size_t i = 0; i < decl.parts.size(); ++i) result += (i == 0 ? " = " : " + ") + text(decl.parts[i]);
    if (decl.optional) result += "  optional";
    if (!decl.stream.name.empty()) result += "  on stream " + decl.stream.name;
    if (decl.device.valid()) result += "  on device " + text(decl.device);
    result += needs(decl.needs);
    if (decl.condition.valid()) result += "  if " + text(decl.condition);
    line(result);
  }

  std::string value_line(const ValueLine& each, std::string_view sign = "") const {
    std::string result = op_or_pair(each.target);
    if (each.after.valid()) result += " after " + text(each.after);
    const bool signed_number = ast_[each.value].kind == ExprKind::Number && ast_[each.target].name.name != "weights";
    return fmt::format("{} {} {}{}", result, each.at_most ? "<=" : "=", signed_number ? sign : "", text(each.value));
  }

  void on_device(const OnDevice& device) {
    section();
    std::string heading = "on device " + device.variable.name;
    if (device.devices.valid()) {
      const std::string devices = text(device.devices);
      if (!device.variable.name.empty())
        heading += " in " + devices;
      else
        // A name alone would be a new one.
        heading += ast_[device.devices].kind == ExprKind::Name ? "(" + devices + ")" : devices;
    }
    line(heading + " {");
    ++indent_;
    body(device.list);
    for (const BlockDecl& each : device.blocks) {
      line(each.kind == BlockKind::Any ? "any {" : "fill {");
      nested(each.body);
      line("}");
    }
    for (const LimitDecl& each : device.limits) line(fmt::format("limit {} <= {}", each.what.name, text(each.value)));
    --indent_;
    line("}");
  }

  void nested(const Body& statements) {
    ++indent_;
    body(statements);
    --indent_;
  }

  void body(const Body& statements) {
    for (const Statement& each : statements) statement(each);
  }

  void statement(const Statement& each) {
    switch (each.kind) {
      case StatementKind::Op:
        line(op_or_pair(each.expr) + (each.at.valid() ? " at " + text(each.at) : ""));
        return;
      case StatementKind::Repeat:
        line("repeat " + text(each.expr) + " {");
        nested(each.body);
        line("}");
        return;
      case StatementKind::For:
        line(fmt::format("for {} in {} {{", each.variable.name, text(each.expr)));
        nested(each.body);
        line("}");
        return;
      case StatementKind::If: {
        std::string heading;
        for (const Branch& branch : each.branches) {
          heading += branch.condition.valid() ? "if " + text(branch.condition) + " {" : "{";
          line(heading);
          nested(branch.body);
          heading = "} else ";
        }
        line("}");
        return;
      }
      case StatementKind::Let:
        STAVE_CHECK(each.let, "a `let` statement without its declaration");
        line(let(*each.let));
        return;
    }
  }

  void table(const TableDecl& decl) {
    section();
    line("table {");
    for (const TableRow& row : decl.rows) {
      std::string text = fmt::format("  {}:", row.device);
      for (std::uint32_t i = row.first; i < row.last; ++i) {
        const Cell& cell = decl.cells[i];
        text += cell.overlaps_previous ? "+" : " ";
        if (cell.call != Cell::kNone) {
          text += this->text(decl.calls[cell.call]);
          continue;
        }
        if (cell.stage != Cell::kNone) text += std::to_string(cell.stage);
        text += decl.letters[cell.letter];
        if (cell.microbatch != Cell::kNone) text += std::to_string(cell.microbatch);
      }
      line(text);
    }
    line("}");
  }

  void expect(const Expect& each) {
    std::string result = "expect " + text(each.claim);
    if (each.list.valid()) result += fmt::format(" for {} in {}", each.variable.name, text(each.list));
    if (each.condition.valid()) result += " if " + text(each.condition);
    line(result);
  }

  const Ast& ast_;
  std::string out_;
  std::size_t indent_ = 0;
};

}  // namespace

std::string print_ast(const Ast& ast) { return Printer(ast).file(); }

std::string print_expression(const Ast& ast, ExprId expr) { return Printer(ast).text(expr); }

std::string print_number(Rational value) {
  // More digits than any literal that parses has behind its point.
  constexpr int kMostDigits = 40;
  if (value.whole()) return std::to_string(value.numerator());
  const bool negative = value.numerator() < 0;
  const std::int64_t whole = value.numerator() / value.denominator();
  Int128 rest = value.numerator() % value.denominator();
  if (negative) rest = -rest;
  std::string result = (negative ? "-" : "") + std::to_string(whole < 0 ? -whole : whole) + ".";
  for (int i = 0; i < kMostDigits && rest != 0; ++i) {
    rest *= 10;
    result += static_cast<char>('0' + static_cast<int>(rest / value.denominator()));
    rest %= value.denominator();
  }
  return rest == 0 ? result : fmt::format("{} / {}", value.numerator(), value.denominator());
}

}  // namespace stave
