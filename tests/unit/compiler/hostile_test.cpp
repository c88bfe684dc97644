// Texts that would crash a parser, eat the memory or take for ever.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <string_view>

#include "language_examples.h"
#include "parse_text.h"

using namespace stave;

namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

/// The kind of the only error of a text.
std::string kind(std::string text) {
  const Parsed parsed = parse_text(std::move(text));
  CHECK(!parsed.ast.has_value());
  CHECK(parsed.sink.errors() == 1);
  return parsed.sink.all().empty() ? "" : std::string(parsed.sink.all()[0].kind);
}

bool parses(std::string text) {
  const Parsed parsed = parse_text(std::move(text));
  CHECK_MESSAGE(parsed.ast.has_value(), parsed.lines());
  return parsed.ast.has_value();
}

}  // namespace

TEST_CASE("200 brackets are deep enough, more are too many") {
  for (const char* open : {"(", "[", "f(", "f(1, ", "a[", "(1 + "}) {
    const std::string close = std::string(open).find('[') != std::string::npos ? "]" : ")";
    CHECK(parses("let x = " + repeated(open, 199) + "1" + repeated(close, 199)));
    CHECK(kind("let x = " + repeated(open, 201) + "1" + repeated(close, 201)) == "nested-too-deep");
    CHECK(kind("let x = " + repeated(open, 10'000) + "1" + repeated(close, 10'000)) == "nested-too-deep");
  }
  CHECK(parses("on device d { " + repeated("for i in x { ", 199) + repeated("}", 200)));
  CHECK(kind("on device d { " + repeated("repeat 2 { ", 10'000) + repeated("}", 10'001)) == "nested-too-deep");
  CHECK(kind("let x = " + repeated("(", 2000)) == "nested-too-deep");
  CHECK(kind("let x = " + repeated("(", 150)) == "unclosed-bracket");
}

TEST_CASE("chains without brackets have an end too") {
  CHECK(kind("let x = " + repeated("-", 5000) + "1") == "nested-too-deep");
  CHECK(kind("let x = " + repeated("not ", 5000) + "a") == "nested-too-deep");
  CHECK(kind("let x = " + repeated("- not ", 5000) + "a") == "nested-too-deep");
  CHECK(kind("let x = " + repeated("1 if a else ", 20'000) + "1") == "nested-too-deep");
  CHECK(kind("let x = " + repeated("1 if a else ", 300) + "1") == "nested-too-deep");
  CHECK(kind("let x = " + repeated("1 + ", 100'000) + "1") == "nested-too-deep");
  CHECK(kind("let x = " + repeated("a and ", 100'000) + "a") == "nested-too-deep");
  CHECK(kind("let x = a" + repeated("[0]", 100'000)) == "nested-too-deep");
  CHECK(kind("let x = " + repeated("a if ", 100'000) + "a") == "syntax");
  CHECK(parses("let x = " + repeated("1 + ", 190) + "1"));
  CHECK(parses("let x = " + repeated("1 if a else ", 190) + "1"));
  CHECK(parses("let x = " + repeated("-", 190) + "1"));
  // As many branches as one likes: they do not stand inside each other.
  CHECK(parses("on device d { if a { } " + repeated("else if b { F(d, 0) } ", 20'000) + "}"));
}

TEST_CASE("a large text is refused, unless it is a table") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(kind("# " + repeated("x", 100'000'000)) == "file-too-large");
  CHECK(kind(repeated("F(0, 1) ", 12'500'000)) == "file-too-large");
  CHECK(kind("let x = \"" + repeated("x", 100'000'000)) == "file-too-large");
  CHECK(kind(repeated("table { 0: F0 } ", 1'000'000)) == "file-too-large");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(parses("table { 0: " + repeated("F0 B0 . ", 400'000) + "}"));
}

TEST_CASE("what is no text") {
  CHECK(kind("") == "empty-file");
  CHECK(kind(" \r\n\t") == "empty-file");
  CHECK(kind("# only a comment") == "empty-file");
  CHECK(kind("\x7F"
             "ELF") == "not-text");
  CHECK(kind(std::string("schedule\0a", 10)) == "not-text");
  CHECK(kind(std::string("# \0", 3)) == "not-text");
  CHECK(kind(std::string("table { \0 }", 11)) == "not-text");
  CHECK(kind("require a \"\x01\"") == "not-text");
  for (const char* bytes : {"\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    CHECK(kind(std::string("schedule ") + bytes) == "invalid-utf8");
    CHECK(kind(std::string("# ") + bytes) == "invalid-utf8");
    CHECK(kind(std::string("require a \"") + bytes + "\"") == "invalid-utf8");
    CHECK(kind(std::string("table { ") + bytes + " }") == "invalid-utf8");
  }
  CHECK(parse_text("schedule a\n# \xC3\xA9 \xFF").lines() ==
        "t:2:5: error: the byte 0xff is no part of a UTF-8 text [invalid-utf8]\n");
  CHECK(kind("\xFF\xFE"
             "s") == "invalid-utf8");
  CHECK(kind("stages \xC3\x97 3") == "unexpected-character");
}

TEST_CASE("brackets that do not match") {
  CHECK(kind("let x = (1") == "unclosed-bracket");
  CHECK(kind("let x = (1]") == "unclosed-bracket");
  CHECK(kind("let x = 1)") == "unopened-bracket");
  CHECK(kind("}") == "unopened-bracket");
  CHECK(kind("table { 0: F0") == "unclosed-bracket");
  CHECK(kind("table {") == "unclosed-bracket");
  CHECK(kind("on device d { repeat 3 { F(d, next)\n}\nexpect a == 3\n") == "unclosed-bracket");
  CHECK(kind("require a \"x\nrequire b \"y\"") == "unclosed-string");
  // In comments and texts they are no brackets.
  CHECK(parses("require a \"(\" # (\n"));
  CHECK(parses("# table { (\ndevices 3"));
}

TEST_CASE("many errors are counted, 20 are kept") {
  const Parsed parsed = parse_text(repeated("let 3\n", 1000));
  CHECK(parsed.sink.all().size() == Diagnostics::kMost);
  CHECK(parsed.sink.dropped() > 0);
  const Parsed cells = parse_text("table { 0: " + repeated("?? ", 100'000) + "}");
  CHECK(cells.sink.all().size() == Diagnostics::kMost);
  const Parsed numbers = parse_text("cost " + repeated("F = 99999999999999999999, ", 100) + "F = 1");
  CHECK(numbers.sink.all().size() == Diagnostics::kMost);
  CHECK(numbers.sink.dropped() == 80);
}

TEST_CASE("a file with slips parses, or has an error with a place in it") {
  CHECK(rc::check("slips", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::string text(kLanguageExamples[below(kLanguageExamples.size())].text);
    using namespace std::literals;
    constexpr std::string_view kBytes = "(){}[]=,.*+-/<>!\"# \n09aFdnext\x00\x7F\x80\xC3\xFF"sv;
    for (std::size_t slips = 1 + below(4); slips > 0; --slips) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(text.size() - at, below(12));
      switch (below(4)) {
        case 0:
          text[at] = kBytes[below(kBytes.size())];
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
        default:
          text.insert(below(text.size()), text.substr(at, length));
      }
      if (text.empty()) break;
    }
    const Parsed parsed = parse_text(text);
    RC_ASSERT(parsed.ast.has_value() == !parsed.sink.has_errors());
    for (const Diagnostic& each : parsed.sink.all()) {
      RC_ASSERT(each.primary.span.valid());
      RC_ASSERT(each.primary.span.begin <= each.primary.span.end);
      RC_ASSERT(each.primary.span.end <= text.size());
      RC_ASSERT(!each.message.empty());
    }
    render_snippets(parsed.sources, parsed.sink, {});
  }));
}
