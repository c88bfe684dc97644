#include "compiler/parse.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "ast_shape.h"
#include "language_examples.h"
#include "parse_text.h"

using namespace stave;

namespace {

/// The shape of `text` as the value of a `let`.
std::string value(const std::string& text) {
  const Parsed parsed = parse_text("let x = " + text);
  CHECK_MESSAGE(parsed.ast.has_value(), text << "\n" << parsed.lines());
  return parsed.ast ? shape(*parsed.ast, parsed.ast->lets[0].value) : "";
}

/// What is said of a file that has errors.
std::string said(const std::string& text) {
  const Parsed parsed = parse_text(text);
  CHECK_MESSAGE(!parsed.ast.has_value(), text);
  return parsed.lines();
}

}  // namespace

TEST_CASE("every construct of the language parses") {
  for (const LanguageExample& example : kLanguageExamples) {
    const Parsed parsed = parse_text(std::string(example.text));
    CHECK_MESSAGE(parsed.ast.has_value(), example.name << "\n" << parsed.lines());
  }
}

TEST_CASE("line ends mean nothing") {
  for (const LanguageExample& example : kLanguageExamples) {
    std::string text(example.text);
    if (text.find('#') != std::string::npos) continue;
    const Parsed parsed = parse_text(text);
    for (char& c : text)
      if (c == '\n') c = ' ';
    const Parsed joined = parse_text(text);
    REQUIRE_MESSAGE(joined.ast.has_value(), example.name << "\n" << joined.lines());
    CHECK(shape(*parsed.ast) == shape(*joined.ast));
  }
}

TEST_CASE("carriage returns and a byte order mark change nothing") {
  const Parsed plain = parse_text("schedule a(P = 4)\ndevices P # x\nrequire P > 1 \"more\"\ntable { 0: F0\n }\n");
  const Parsed windows =
      parse_text("\xEF\xBB\xBFschedule a(P = 4)\r\ndevices P # x\r\nrequire P > 1 \"more\"\r\ntable { 0: F0\r\n }\r\n");
  REQUIRE(plain.ast);
  REQUIRE(windows.ast);
  CHECK(shape(*plain.ast) == shape(*windows.ast));
}

TEST_CASE("operators bind as the language says") {
  CHECK(value("a - b - c") == value("(a - b) - c"));
  CHECK(value("a * b div c mod d / e") == value("(((a * b) div c) mod d) / e"));
  CHECK(value("a + b * c") == value("a + (b * c)"));
  CHECK(value("-a * b") == value("(-a) * b"));
  CHECK(value("-a[0]") == value("-(a[0])"));
  CHECK(value("a - -b") == value("a - (-b)"));
  CHECK(value("0 .. n - 1") == value("0 .. (n - 1)"));
  CHECK(value("a + b == c * d") == value("(a + b) == (c * d)"));
  CHECK(value("not a == b and c or d") == value("((not (a == b)) and c) or d"));
  CHECK(value("a and not b or c") == value("(a and (not b)) or c"));
  CHECK(value("a if b else c if d else e") == value("a if b else (c if d else e)"));
  CHECK(value("a or b if c or d else e + 1") == value("(a or b) if (c or d) else (e + 1)"));
  CHECK(value("0 .. P if a else P .. 2 * P") == value("(0 .. P) if a else (P .. (2 * P))"));
  CHECK(value("+a") == value("a"));
  CHECK(value("sum(e for e in a)") == value("sum([e for e in a])"));
}

TEST_CASE("numbers are exact") {
  const Parsed parsed = parse_text("let a = 0.1 let b = 2.50 let c = 9223372036854775807 let d = 0.000000000000000001");
  REQUIRE_MESSAGE(parsed.ast, parsed.lines());
  const Ast& ast = *parsed.ast;
  CHECK(ast[ast.lets[0].value].value == *Rational::make(1, 10));
  CHECK(ast[ast.lets[1].value].value == *Rational::make(5, 2));
  CHECK(ast[ast.lets[2].value].value == Rational(INT64_MAX));
  CHECK(ast[ast.lets[3].value].value == *Rational::make(1, 1'000'000'000'000'000'000));
}

TEST_CASE("an `if` after an expression is a statement, a clause or a choice") {
  const Parsed parsed = parse_text(
      "on device d {\n"
      "  let a = b if c { F(d, 0) } else { F(d, 1) }\n"
      "  F(d, 2) at x if c { F(d, 3) }\n"
      "  F(d, 4) at x if c else y\n"
      "}\n"
      "op X(s in stages) on device s if s > 0\n"
      "op Y(s in stages)\n"
      "on device e { Y(e) }\n"
      "expect a == b if c\n"
      "expect a if b else c\n");
  REQUIRE_MESSAGE(parsed.ast, parsed.lines());
  const Ast& ast = *parsed.ast;
  REQUIRE(ast.devices.size() == 2);
  REQUIRE(ast.devices[0].list.size() == 5);
  CHECK(ast.devices[0].list[0].kind == StatementKind::Let);
  CHECK(ast.devices[0].list[1].kind == StatementKind::If);
  CHECK(ast.devices[0].list[3].kind == StatementKind::If);
  CHECK(ast[ast.devices[0].list[4].at].kind == ExprKind::Conditional);
  CHECK(ast.ops[0].condition.valid());
  CHECK(!ast.ops[1].device.valid());
  CHECK(ast.expects[0].condition.valid());
  CHECK(!ast.expects[1].condition.valid());
}

TEST_CASE("`on device` takes a new name, a name in a list, or a device") {
  const Parsed parsed = parse_text(
      "on device d { } on device d in 1 .. P { } on device 0 { } on device (last) { } on device last - 1 { }");
  REQUIRE_MESSAGE(parsed.ast, parsed.lines());
  const std::vector<OnDevice>& all = parsed.ast->devices;
  REQUIRE(all.size() == 5);
  CHECK((all[0].variable.name == "d" && !all[0].devices.valid()));
  CHECK((all[1].variable.name == "d" && all[1].devices.valid()));
  for (std::size_t i = 2; i < 5; ++i) CHECK((all[i].variable.name.empty() && all[i].devices.valid()));
}

TEST_CASE("spans are the bytes of the file, also behind tables and other scripts") {
  const std::string text =
      "schedule toy # d\xC3\xA9j\xC3\xA0\ntable { 0: F0 # \xE2\x82\xAC }\n 1: B0 }\nexpect makespan == 6\n";
  const Parsed parsed = parse_text(text);
  REQUIRE_MESSAGE(parsed.ast, parsed.lines());
  const Ast& ast = *parsed.ast;
  CHECK(parsed.sources.text(ast.expects[0].span) == "expect makespan == 6");
  CHECK(parsed.sources.text(ast[ast.expects[0].claim].span) == "makespan == 6");
  REQUIRE(ast.tables.size() == 1);
  const Cell& cell = ast.tables[0].cells[1];
  CHECK(parsed.sources.text({ast.source, cell.begin, cell.begin + cell.length}) == "B0");
  CHECK(parsed.sources.text(ast.tables[0].span).starts_with("table {"));
  CHECK(parsed.sources.text(ast.tables[0].span).ends_with("B0 }"));
}

TEST_CASE("the cells of a table") {
  const Parsed parsed = parse_text("table { 7: F0 . 2F1 0F7+3B5 Decode(0, 1, 2) G 3O 0 :K2(4) }");
  REQUIRE_MESSAGE(parsed.ast, parsed.lines());
  const TableDecl& table = parsed.ast->tables[0];
  REQUIRE(table.rows.size() == 2);
  CHECK((table.rows[0].device == 7 && table.rows[0].first == 0 && table.rows[0].last == 7));
  CHECK((table.rows[1].device == 0 && table.rows[1].first == 7 && table.rows[1].last == 8));
  const std::vector<Cell>& cells = table.cells;
  CHECK((cells[0].stage == Cell::kNone && cells[0].microbatch == 0));
  CHECK((cells[1].stage == 2 && cells[1].microbatch == 1 && !cells[1].overlaps_previous));
  CHECK((cells[2].stage == 0 && cells[3].stage == 3 && cells[3].overlaps_previous));
  CHECK(table.letters[cells[3].letter] == "B");
  CHECK(shape(*parsed.ast, table.calls[cells[4].call]) == value("Decode(0, 1, 2)"));
  CHECK((cells[5].stage == Cell::kNone && cells[5].microbatch == Cell::kNone));
  CHECK(shape(*parsed.ast, table.calls[cells[7].call]) == value("K2(4)"));
}

TEST_CASE("costs and values of the command line") {
  Parsed base = parse_text("schedule a(P = 4)\n");
  REQUIRE(base.ast);
  const SourceId costs = base.sources.add("--cost", "F=18522,I=18086/3,F with B=2,message(a, b)=601");
  const auto lines = parse_costs(base.sources, costs, *base.ast, base.sink);
  REQUIRE_MESSAGE(lines, base.lines());
  CHECK(lines->size() == 4);
  CHECK((*base.ast)[(*lines)[2].target].kind == ExprKind::With);
  const SourceId list = base.sources.add("length", "[3, 1/2]");
  const auto number = parse_value(base.sources, list, *base.ast, base.sink);
  REQUIRE(number);
  CHECK((*base.ast)[*number].kind == ExprKind::List);
  for (const char* bad : {"", "4 5", "[3", "F=", "-"}) {
    Diagnostics sink;
    CHECK(!parse_value(base.sources, base.sources.add("P", bad), *base.ast, sink));
    CHECK(sink.errors() == 1);
    CHECK(!parse_costs(base.sources, base.sources.add("--cost", bad), *base.ast, sink));
    CHECK(sink.errors() == 2);
  }
}

TEST_CASE("syntax errors say what was meant") {
  CHECK(said("devics 4") == "t:1:1: error: `devics` begins no declaration [unknown-keyword]\n");
  CHECK(said("shedule a(P = 4)") == "t:1:1: error: `shedule` begins no declaration [unknown-keyword]\n");
  CHECK(said("let next = 4") ==
        "t:1:5: error: `next` is a word of the language and cannot be a name [reserved-word]\n");
  CHECK(said("for d in 3 { }") == "t:1:1: error: `for` stands outside `on device` [misplaced]\n");
  CHECK(said("let x 4") == "t:1:7: error: `=` is needed before `4` [syntax]\n");
  CHECK(said("let x == 4") == "t:1:7: error: `==` compares two values; a name gets its value by `=` [syntax]\n");
  CHECK(said("expect makespan = 3") ==
        "t:1:17: error: `=` gives a name its value; two values are compared by `==` [syntax]\n");
  CHECK(said("F(0, 1)") == "t:1:1: error: the op `F` stands outside `on device` [misplaced]\n");
  CHECK(said("devices 2 schedule a") == "t:1:11: error: `schedule` stands once, at the top of the file [misplaced]\n");
  CHECK(said("on device d { any { any { } } }") == "t:1:21: error: `any` stands inside another block [misplaced]\n");
  CHECK(said("on device d { cost F = 1 }") == "t:1:15: error: `cost` stands inside `on device` [misplaced]\n");
  CHECK(said("on device d { elif x { } }") == "t:1:15: error: `elif` begins no statement [unknown-keyword]\n");
  CHECK(said("on device d { else { } }") == "t:1:15: error: this `else` has no `if` before it [misplaced]\n");
  CHECK(said("let x = 2P") == "t:1:9: error: `2P` is neither a number nor a name [syntax]\n");
  CHECK(said("let x = a b") == "t:1:11: error: `b` cannot follow `a` here [syntax]\n");
  CHECK(said("let x = a if b") == "t:1:11: error: an `if` in an expression needs an `else` [syntax]\n");
  CHECK(said("let x =\ndevices 4") == "t:2:9: error: `4` cannot follow `devices` here [syntax]\n");
  CHECK(said("let x = ") == "t:1:9: error: the file ends where a value is needed [syntax]\n");
  CHECK(said("require P % 2 == 0") == "t:1:11: error: `%` means nothing here [unexpected-character]\n");
  CHECK(said("require a && b") == "t:1:11: error: `&&` means nothing here [unexpected-character]\n");
  CHECK(said("schedule a(P, M = 3)") == "t:1:12: error: the parameter `P` needs a default [syntax]\n");
  CHECK(said("op X(s in stages) after F") == "t:1:25: error: the op `F` needs its indices here [syntax]\n");
  CHECK(said("on device d F(d, 0)") == "t:1:13: error: `{` is needed before `F` [syntax]\n");
  CHECK(said("expect F with B == 3") ==
        "t:1:10: error: an overlapped pair in an expression needs parentheses [syntax]\n");
  CHECK(said("on device d { F(d next) }") == "t:1:19: error: `,` or `)` is needed before `next` [syntax]\n");
  CHECK(said("place stages s on device s") == "t:1:7: error: `stage` is needed before `stages` [syntax]\n");
  CHECK(said("op X(s in stages) optional optional") == "t:1:28: error: this is said twice of `X` [syntax]\n");
  CHECK(said("let x = [1, i for i in a]") ==
        "t:1:13: error: a list is either written out or made by one `for` [syntax]\n");
  CHECK(said("let x = f(1, i for i in a)") ==
        "t:1:14: error: `for` makes a list of this argument, which must then be the only one [syntax]\n");
  CHECK(said("cost F <= 1") ==
        "t:1:6: error: `<=` stands in a `freeze` line only; a value is given with `=` [syntax]\n");
  CHECK(said("let x = 9223372036854775808") ==
        "t:1:9: error: this number does not fit into 64 bits [number-too-large]\n");
}

TEST_CASE("one cause is one error, and the rest of the file is read") {
  CHECK(said("let next = 4 + (3\n  * 2)\nlet x 4\ndevices 3\non device d { F(d, ) B(d, 0) }\nfoo 3\n") ==
        "t:1:5: error: `next` is a word of the language and cannot be a name [reserved-word]\n"
        "t:3:7: error: `=` is needed before `4` [syntax]\n"
        "t:5:20: error: a value is needed before `)` [syntax]\n"
        "t:6:1: error: `foo` begins no declaration [unknown-keyword]\n");
}

TEST_CASE("cells of a table that name no op") {
  CHECK(said("table { 0: F0 Q# x\n F3 0 F1\n1 F0 }") ==
        "t:2:5: error: `:` is missing after device 0 [table-row]\n"
        "t:3:1: error: `:` is missing after device 1 [table-row]\n");
  CHECK(said("table { F0 }") == "t:1:9: error: a row begins with its device and a colon [table-row]\n");
  CHECK(said("table { 0: 2F99999999999 }") ==
        "t:1:14: error: `99999999999` is too large for an index [number-too-large]\n");
  CHECK(said("table { 4294967296: F0 }") ==
        "t:1:9: error: `4294967296` is too large for an index [number-too-large]\n");
  CHECK(said("table { 0: F0+F1+F2 }") == "t:1:12: error: at most two ops overlap [table-cell]\n");
  CHECK(said("table { 0: !! }") == "t:1:12: error: `!!` names no op [table-cell]\n");
  CHECK(said("table { 0: F0Z }") == "t:1:14: error: `Z` is too much here [table-cell]\n");
  CHECK(said("table { 0: F0+ }") == "t:1:14: error: an op is missing behind `+` [table-cell]\n");
  CHECK(said("table { 0: Decode(0, x) }") == "t:1:22: error: a whole number is needed here [table-cell]\n");
  CHECK(said("table { 0: Decode(0 }") == "t:1:21: error: `,` or `)` is needed here [table-cell]\n");
  CHECK(said("table { 0: " + std::string(300, 'F') + " }") ==
        "t:1:12: error: a cell has at most 255 characters [table-cell]\n");
}
