#include "compiler/print.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "ast_shape.h"
#include "compiler/operators.h"
#include "language_examples.h"
#include "parse_text.h"

using namespace stave;

namespace {

/// An Ast that could have been parsed, chosen by a seed.
class RandomAst {
 public:
  explicit RandomAst(std::uint64_t seed) : random_(seed) {}

  Ast file() {
    if (maybe()) {
      ast_.name = name();
      times(3, [&] { ast_.parameters.push_back({name(), value(), {}}); });
    }
    times(2, [&] { ast_.uses.push_back({maybe() ? "training" : "a/b.sched", false, {}}); });
    for (Use& use : ast_.uses) use.is_file = use.name != "training";
    times(2, [&] { ast_.requires_.push_back({value(), maybe() ? "P must be \xC3\xA9ven # (" : "", {}}); });
    times(3, [&] {
      ast_.settings.push_back({{pick<std::string>({"devices", "stages", "microbatches", "slices"}), {}}, value(), {}});
    });
    times(2, [&] { ast_.places.push_back({name(), maybe() ? name() : Identifier(), value(), {}}); });
    times(2, [&] { ast_.routes.push_back({name(), value(), {}}); });
    times(3, [&] { ast_.lets.push_back(let()); });
    times(3, [&] { ast_.ops.push_back(op()); });
    times(2, [&] { ast_.added_needs.push_back({call(1), needs(1), {}}); });
    times(3, [&] { ast_.costs.push_back(value_line(false)); });
    times(3, [&] { ast_.memory.push_back(value_line(false)); });
    times(2, [&] { ast_.freezes.push_back(value_line(true)); });
    times(2, [&] { ast_.devices.push_back(on_device()); });
    times(2, [&] { ast_.tables.push_back(table()); });
    times(3, [&] {
      Expect expect;
      expect.claim = value();
      if (maybe()) expect.condition = value();
      if (maybe()) {
        expect.variable = name();
        expect.list = value();
      }
      ast_.expects.push_back(expect);
    });
    // An empty file is none.
    if (ast_.expects.empty()) ast_.expects.push_back({value(), {}, {}, {}, {}});
    return std::move(ast_);
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool maybe() { return below(2) == 0; }
  template <class T>
  T pick(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  template <class F>
  void times(std::size_t most, F f) {
    for (std::size_t n = below(most + 1); n > 0; --n) f();
  }
  Identifier name() { return {pick<std::string>({"a", "b", "P", "F", "B", "message", "warm_up", "_x1", "span"}), {}}; }

  ExprId add(ExprKind kind, std::vector<ExprId> operands, Identifier id = {}) {
    Expr expr;
    expr.kind = kind;
    expr.operands = std::move(operands);
    expr.name = std::move(id);
    return ast_.exprs.push_back(std::move(expr));
  }

  ExprId number() {
    Expr expr;
    const auto digits = static_cast<std::int64_t>(below(1'000'000));
    expr.value = *Rational::make(digits, pick<std::int64_t>({1, 1, 1, 10, 100, 1'000'000'000}));
    return ast_.exprs.push_back(expr);
  }

  ExprId value(std::size_t depth = 4) {
    if (depth == 0) return maybe() ? number() : add(ExprKind::Name, {}, maybe() ? name() : Identifier{"stages", {}});
    const auto inner = [&] { return value(below(depth)); };
    switch (below(12)) {
      case 0:
        return add(ExprKind::Negate, {inner()});
      case 1:
        return add(ExprKind::Not, {inner()});
      case 2:
        return add(ExprKind::Conditional, {inner(), inner(), inner()});
      case 3:
        return call(depth);
      case 4:
        return add(ExprKind::Element, {inner(), inner()});
      case 5:
        return add(ExprKind::Range, {inner(), inner()});
      case 6:
        return add(ExprKind::Each, {inner(), inner()}, name());
      case 7:
        return add(ExprKind::With, {op_or_name(), op_or_name()});
      case 8: {
        std::vector<ExprId> items;
        times(3, [&] { items.push_back(inner()); });
        return add(ExprKind::List, std::move(items));
      }
      default: {
        const ExprId result = add(ExprKind::Binary, {inner(), inner()});
        ast_.exprs[result].op = kOperators[below(kOperators.size())].op;
        return result;
      }
    }
  }

  ExprId call(std::size_t depth) {
    std::vector<ExprId> arguments;
    times(3, [&] {
      const std::size_t what = below(8);
      arguments.push_back(what == 0   ? add(ExprKind::Star, {})
                          : what == 1 ? add(ExprKind::Next, {})
                          : what == 2 ? add(ExprKind::Name, {}, {"memory", {}})
                                      : value(depth - 1));
    });
    return add(ExprKind::Call, std::move(arguments), name());
  }

  ExprId op_or_name() { return maybe() ? call(1) : add(ExprKind::Name, {}, name()); }

  LetDecl let() {
    LetDecl result;
    result.name = name();
    result.is_function = maybe();
    if (result.is_function) times(2, [&] { result.parameters.push_back(name()); });
    result.value = value();
    return result;
  }

  std::vector<Need> needs(std::size_t least) {
    std::vector<Need> result;
    times(3, [&] { result.push_back({maybe() ? name() : Identifier(), call(2), {}}); });
    while (result.size() < least) result.push_back({{}, call(1), {}});
    return result;
  }

  OpDecl op() {
    OpDecl result;
    result.name = name();
    times(3, [&] { result.parameters.push_back({name(), value(2)}); });
    times(2, [&] { result.parts.push_back(call(1)); });
    result.optional = maybe();
    if (maybe()) result.stream = name();
    if (maybe()) result.device = value();
    result.needs = needs(0);
    if (maybe()) result.condition = value();
    return result;
  }

  ValueLine value_line(bool may_be_most) {
    ValueLine result;
    result.target = op_or_name();
    if (below(4) == 0)
      result.after = op_or_name();
    else if (below(4) == 0)
      result.target = add(ExprKind::With, {result.target, op_or_name()});
    result.value = value();
    result.at_most = may_be_most && maybe();
    return result;
  }

  Body body(std::size_t depth) {
    Body result;
    times(3, [&] { result.push_back(statement(depth)); });
    return result;
  }

  Statement statement(std::size_t depth) {
    Statement result;
    switch (depth == 0 ? 0 : below(5)) {
      case 0:
        result.expr = maybe() ? call(2) : add(ExprKind::With, {call(1), call(1)});
        if (maybe()) result.at = value(2);
        break;
      case 1:
        result.kind = StatementKind::Repeat;
        result.expr = value(2);
        result.body = body(depth - 1);
        break;
      case 2:
        result.kind = StatementKind::For;
        result.variable = name();
        result.expr = value(2);
        result.body = body(depth - 1);
        break;
      case 3:
        result.kind = StatementKind::If;
        result.branches.push_back({value(2), body(depth - 1)});
        times(2, [&] { result.branches.push_back({value(2), body(depth - 1)}); });
        if (maybe()) result.branches.push_back({ExprId(), body(depth - 1)});
        break;
      default:
        result.kind = StatementKind::Let;
        result.let = let();
    }
    return result;
  }

  OnDevice on_device() {
    OnDevice result;
    if (maybe()) result.variable = name();
    if (result.variable.name.empty() || maybe()) result.devices = value();
    result.list = body(3);
    times(2, [&] { result.blocks.push_back({maybe() ? BlockKind::Any : BlockKind::Fill, body(2), {}}); });
    times(2, [&] { result.limits.push_back({maybe() ? Identifier{"memory", {}} : name(), value(2), {}}); });
    return result;
  }

  TableDecl table() {
    TableDecl result;
    result.letters = {"F", "Bw_"};
    times(3, [&] {
      TableRow row;
      row.device = static_cast<std::uint32_t>(below(100));
      row.first = static_cast<std::uint32_t>(result.cells.size());
      times(6, [&] {
        Cell cell;
        cell.letter = static_cast<std::uint8_t>(below(2));
        if (maybe()) cell.stage = static_cast<std::uint32_t>(below(1000));
        if (maybe()) cell.microbatch = static_cast<std::uint32_t>(below(4'000'000'000));
        cell.overlaps_previous = result.cells.size() > row.first && !result.cells.back().overlaps_previous && maybe();
        if (below(5) == 0) {
          std::vector<ExprId> indices;
          times(3, [&] {
            Expr index;
            index.value = Rational(static_cast<std::int64_t>(below(100)));
            indices.push_back(ast_.exprs.push_back(index));
          });
          cell.call = static_cast<std::uint32_t>(result.calls.size());
          result.calls.push_back(add(ExprKind::Call, std::move(indices), {"Decode2", {}}));
        }
        result.cells.push_back(cell);
      });
      row.last = static_cast<std::uint32_t>(result.cells.size());
      result.rows.push_back(row);
    });
    return result;
  }

  std::mt19937_64 random_;
  Ast ast_;
};

}  // namespace

TEST_CASE("parse, print, parse is the identity on every construct") {
  for (const LanguageExample& example : kLanguageExamples) {
    const Parsed first = parse_text(std::string(example.text));
    REQUIRE_MESSAGE(first.ast, example.name);
    const std::string printed = print_ast(*first.ast);
    const Parsed second = parse_text(printed);
    REQUIRE_MESSAGE(second.ast, printed << second.lines());
    CHECK(shape(*first.ast) == shape(*second.ast));
    CHECK(print_ast(*second.ast) == printed);
  }
}

TEST_CASE("print, parse is the identity on random files") {
  const bool held = rc::check("random Ast", [](std::uint64_t seed) {
    const Ast ast = RandomAst(seed).file();
    const std::string printed = print_ast(ast);
    const Parsed parsed = parse_text(printed);
    if (!parsed.ast) RC_FAIL(printed + parsed.lines());
    if (shape(ast) != shape(*parsed.ast)) RC_FAIL(printed + shape(ast) + "\n" + shape(*parsed.ast));
  });
  CHECK(held);
}

TEST_CASE("one way of writing") {
  const Parsed parsed = parse_text(
      "schedule a(P=4) expect (((makespan)))==((M+P)-1)*((F+B)) for d in devices if not(a==b) on device (last){"
      "limit memory<=3 fill{W(d,*)}if a{F(d,next) at 0.50}else if b{}else{}} devices P memory F=1,weights(s)=4 "
      "op X(s in stages) after F(s,0),B(s,*) receives y from F(s,1) optional table{0:F0 . 1F2+B3}");
  REQUIRE_MESSAGE(parsed.ast, parsed.lines());
  CHECK(print_ast(*parsed.ast) ==
        R"(schedule a(P = 4)

devices P

op X(s in stages)  optional  after F(s, 0), B(s, *)  receives y from F(s, 1)

memory F = +1
memory weights(s) = 4

on device (last) {
  if a {
    F(d, next) at 0.5
  } else if b {
  } else {
  }
  fill {
    W(d, *)
  }
  limit memory <= 3
}

table {
  0: F0 1F2+B3
}

expect makespan == (M + P - 1) * (F + B) for d in devices if not a == b
)");
}

TEST_CASE("numbers as the language writes them") {
  CHECK(print_number(Rational(-7)) == "-7");
  CHECK(print_number(*Rational::make(1, 4)) == "0.25");
  CHECK(print_number(*Rational::make(-5, 2)) == "-2.5");
  CHECK(print_number(*Rational::make(1, 3)) == "1 / 3");
  CHECK(print_number(*Rational::make(1, 1'000'000'000'000'000'000)) == "0.000000000000000001");
}
