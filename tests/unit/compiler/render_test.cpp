#include "compiler/render.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/diagnostic_kinds.h"
#include "compiler/utf8.h"

using namespace stave;

namespace {

/// A diagnostic at the first place of `marked` in the source, labels likewise.
class Example {
 public:
  explicit Example(std::string text, std::string name = "mine.sched") { add(std::move(text), std::move(name)); }

  SourceId add(std::string text, std::string name) { return last_ = sources.add(std::move(name), std::move(text)); }

  Label at(const std::string& marked, std::string words, SourceId source = SourceId(0)) const {
    const std::size_t begin = sources[source].text.find(marked);
    REQUIRE(begin != std::string::npos);
    return {{source, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + marked.size())},
            std::move(words)};
  }

  std::string snippet(Diagnostic diagnostic, RenderStyle style = {}) {
    diagnostic.kind = "syntax";
    Diagnostics sink;
    sink.add(std::move(diagnostic));
    return render_snippets(sources, sink, style);
  }

  Sources sources;

 private:
  SourceId last_;
};

Diagnostic error(std::string message, Label primary) {
  Diagnostic result;
  result.message = std::move(message);
  result.primary = std::move(primary);
  return result;
}

}  // namespace

TEST_CASE("both places of a conflict, with words of their own") {
  Example example("schedule a\n\n\n\n\non device 0 {\n  F(0, 1)  B(0, 2)\n\n  F(0, 2)\n}\n");
  Diagnostic diagnostic =
      error("`B2` on device 0 runs before its forward `F2`", example.at("B(0, 2)", "backward of microbatch 2"));
  diagnostic.labels.push_back(example.at("F(0, 2)", "its forward comes later"));
  diagnostic.notes.push_back("on device 0, with m = 2");
  diagnostic.fix = "swap them";
  CHECK(example.snippet(diagnostic) ==
        "error: `B2` on device 0 runs before its forward `F2` [syntax]\n"
        "  --> mine.sched:7:12\n"
        "   |\n"
        " 7 |   F(0, 1)  B(0, 2)\n"
        "   |            ^^^^^^^ backward of microbatch 2\n"
        " 9 |   F(0, 2)\n"
        "   |   ------- its forward comes later\n"
        "   = on device 0, with m = 2\n"
        "   = help: swap them\n");
}

TEST_CASE("several labels on one line") {
  Example example("F(0, 1) B(0, 2) W(0, 3)");
  Diagnostic diagnostic = error("three", example.at("B(0, 2)", "second"));
  diagnostic.labels.push_back(example.at("W(0, 3)", "third"));
  diagnostic.labels.push_back(example.at("F(0, 1)", "first"));
  CHECK(example.snippet(diagnostic) ==
        "error: three [syntax]\n"
        "  --> mine.sched:1:9\n"
        "   |\n"
        " 1 | F(0, 1) B(0, 2) W(0, 3)\n"
        "   | ------- ^^^^^^^ ------- third\n"
        "   | |       second\n"
        "   | first\n");
}

TEST_CASE("labels in several files") {
  Example example("use \"b.sched\"\nop F(s in stages)\n", "a.sched");
  const SourceId other = example.add("\nop F(s in stages)\n", "b.sched");
  Diagnostic diagnostic = error("`F` is declared twice", example.at("F(s", "again here"));
  diagnostic.labels.push_back(example.at("F(s", "first here", other));
  CHECK(example.snippet(diagnostic) ==
        "error: `F` is declared twice [syntax]\n"
        "  --> a.sched:2:4\n"
        "   |\n"
        " 2 | op F(s in stages)\n"
        "   |    ^^^ again here\n"
        "  ::: b.sched:2:4\n"
        "   |\n"
        " 2 | op F(s in stages)\n"
        "   |    --- first here\n");
}

TEST_CASE("tabs, wide and combining characters keep the marks below what they mark") {
  Example example("\tx \xE6\xBC\xA2\xE5\xAD\x97 e\xCC\x81 here\n");
  CHECK(example.snippet(error("m", example.at("here", ""))) ==
        "error: m [syntax]\n"
        "  --> mine.sched:1:10\n"
        "   |\n"
        " 1 |     x \xE6\xBC\xA2\xE5\xAD\x97 e\xCC\x81 here\n"
        "   |              ^^^^\n");
}

TEST_CASE("nothing of the source reaches the terminal as a command") {
  Example example("a \x1b[31m \xFF \xE2\x80\xAE here", "evil\x1b.sched");
  CHECK(example.snippet(error("m\x1b\n", example.at("here", ""))) ==
        "error: m   [syntax]\n"
        "  --> evil .sched:1:13\n"
        "   |\n"
        " 1 | a ?[31m ? ? here\n"
        "   |             ^^^^\n");
}

TEST_CASE("a long line is cut around what it shows, also one of many megabytes") {
  Example example(std::string(20'000'000, 'x') + "HERE" + std::string(20'000'000, 'y'));
  CHECK(example.snippet(error("m", example.at("HERE", "this")), {false, 40}) ==
        "error: m [syntax]\n"
        "  --> mine.sched:1:20000001\n"
        "   |\n"
        " 1 | ...xxxxxxxxxxxHEREyyyyyyyyyyyyyy...\n"
        "   |               ^^^^ this\n");
}

TEST_CASE("places far apart on one long line are shown apart") {
  Example example("FIRST " + std::string(500, '.') + " LAST");
  Diagnostic diagnostic = error("m", example.at("LAST", "after"));
  diagnostic.labels.push_back(example.at("FIRST", "before"));
  CHECK(example.snippet(diagnostic, {false, 40}) ==
        "error: m [syntax]\n"
        "  --> mine.sched:1:508\n"
        "   |\n"
        " 1 | ............. LAST\n"
        "   |               ^^^^ after\n"
        " 1 | FIRST .............................\n"
        "   | ----- before\n");
}

TEST_CASE("the end of a file, an empty file, no place at all") {
  Example example("a\n");
  CHECK(example.snippet(error("m", {{SourceId(0), 2, 2}, ""})) ==
        "error: m [syntax]\n  --> mine.sched:2:1\n   |\n 2 |\n   | ^\n");
  Example empty("");
  CHECK(empty.snippet(error("m", {{SourceId(0), 0, 0}, ""})) ==
        "error: m [syntax]\n  --> mine.sched:1:1\n   |\n 1 |\n   | ^\n");
  CHECK(empty.snippet(error("m", {})) == "error: m [syntax]\n");
}

TEST_CASE("of several lines the first is marked") {
  Example example("let x = 1 +\n  2\n");
  CHECK(example.snippet(error("m", {{SourceId(0), 8, 15}, "this"})) ==
        "error: m [syntax]\n  --> mine.sched:1:9\n   |\n 1 | let x = 1 +\n   |         ^^^ this\n");
}

TEST_CASE("colour repeats what the text says") {
  Example example("F(0, 1) B(0, 2)");
  Diagnostic diagnostic = error("m", example.at("B(0, 2)", "here"));
  diagnostic.labels.push_back(example.at("F(0, 1)", "there"));
  diagnostic.fix = "fix";
  std::string coloured = example.snippet(diagnostic, {true, 100});
  CHECK(coloured.find("\x1b[1;31m^^^^^^^\x1b[0m") != std::string::npos);
  std::string plain;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b')
      i = coloured.find('m', i);
    else
      plain += coloured[i];
  }
  CHECK(plain == example.snippet(diagnostic));
}

TEST_CASE("one line each, and JSON") {
  Example example("ab\ncd\n", "x.sched");
  Diagnostics sink;
  Diagnostic diagnostic = error("bad\nthing", example.at("d", "here"));
  diagnostic.kind = "syntax";
  diagnostic.labels.push_back(example.at("a", "there"));
  diagnostic.notes = {"with m = 2"};
  sink.add(diagnostic);
  Diagnostic placeless = error("lost \xFF", {});
  placeless.kind = "misplaced";
  placeless.severity = Severity::Warning;
  sink.add(placeless);
  CHECK(render_lines(example.sources, sink) ==
        "x.sched:2:2: error: bad thing [syntax]\nwarning: lost \xEF\xBF\xBD [misplaced]\n");
  CHECK(
      diagnostics_json(example.sources, sink).dump() ==
      R"([{"severity":"error","kind":"syntax","message":"bad\nthing","file":"x.sched","line":2,"column":2,"end_line":2,)"
      R"("end_column":3,"label":"here","labels":[{"file":"x.sched","line":1,"column":1,"end_line":1,"end_column":2,)"
      R"("label":"there"}],"notes":["with m = 2"]},{"severity":"warning","kind":"misplaced","message":"lost )"
      "\xEF\xBF\xBD\"}]");
}

TEST_CASE("20 are kept, the others counted") {
  Example example("a");
  Diagnostics sink;
  for (int i = 0; i < 25; ++i) {
    Diagnostic each = error("m", {});
    each.kind = "syntax";
    sink.add(each);
  }
  CHECK(sink.errors() == 25);
  CHECK(sink.all().size() == 20);
  CHECK(sink.dropped() == 5);
  CHECK(render_snippets(example.sources, sink).ends_with("error: m [syntax]\nand 5 more\n"));
  CHECK(render_lines(example.sources, sink).ends_with("error: m [syntax]\nand 5 more\n"));
}

TEST_CASE("every kind has a name of small letters and a meaning, once") {
  for (const Kind& kind : kKinds) {
    CHECK(!kind.meaning.empty());
    CHECK(kind.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos);
    int same = 0;
    for (const Kind& other : kKinds) same += other.name == kind.name ? 1 : 0;
    CHECK_MESSAGE(same == 1, kind.name);
  }
}

TEST_CASE("UTF-8") {
  CHECK(utf8_length("\xE2\x82\xAC", 0) == 3);
  CHECK(utf8_character("\xE2\x82\xAC", 0, 3) == U'\u20AC');
  CHECK(utf8_character("\xF0\x9F\x98\x80", 0, 4) == U'\U0001F600');
  CHECK(utf8_length("\xC0\x80", 0) == 0);
  CHECK(utf8_length("\xED\xA0\x80", 0) == 0);
  CHECK(utf8_length("\xE2\x82", 0) == 0);
  CHECK(valid_utf8("a\xFFz\xE2\x82") == "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
}
