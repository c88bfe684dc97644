// The values of `--over`: ranges, steps, lists, and what is refused before anything is made of it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/axis.h"

namespace stave {
namespace {

std::string read(const std::vector<std::string>& texts) {
  const Result<std::vector<Axis>> axes = read_axes(texts);
  if (!axes) return axes.failure().message;
  std::string result;
  for (const Axis& axis : axes.value()) {
    result += axis.name + ":";
    for (const Rational value : axis.values) result += " " + value_text(value);
    result += ";";
  }
  return result;
}

TEST_CASE("ranges include both ends, steps stop before they pass the last, lists hold both") {
  CHECK(read({"P=1..4"}) == "P: 1 2 3 4;");
  CHECK(read({"M=8..20..5"}) == "M: 8 13 18;");
  CHECK(read({"c=-1..1..1/2"}) == "c: -1 -0.5 0 0.5 1;");
  CHECK(read({"c=0.25,1/3,2..3"}) == "c: 0.25 1/3 2 3;");
  CHECK(read({"P=2..2", "M=4"}) == "P: 2;M: 4;");
}

TEST_CASE("what is no axis") {
  for (const char* text : {"P", "P=", "=1..2", "P=1..", "P=..2", "P=1...2", "P=1..2..3..4", "P=a", "P=1,,2", "P=1,",
                           "P=1/0", "P=1e9", "P=nan", "P=--1", "P=1..2..", "P=99999999999999999999", "P=[1,2]"})
    CHECK_MESSAGE(read({text}).starts_with("--over takes NAME=FIRST..LAST"), text);
  CHECK(read({"P=3..2"}) == "`P=3..2` holds no case: it falls");
  CHECK(read({"P=1..2..0"}) == "the step of `P=1..2..0` must be above 0");
  CHECK(read({"P=1..2", "P=3"}) == "--over gives `P` twice");
  CHECK(read({"P=1..3,2"}) == "--over gives P=2 twice");
}

TEST_CASE("a grid that is too large is refused by its size alone") {
  CHECK(read({"c=1..1000000000"}) == "the grid of --over has 1000000000 cases; at most 1000000 are tried");
  CHECK(read({"P=1..1001", "M=1..1000"}) == "the grid of --over has 1001000 cases; at most 1000000 are tried");
  CHECK(read({"c=0..9000000000000000000..1/9000000000000000000"}) ==
        "the grid of --over has more than 10^18 cases; at most 1000000 are tried");
  CHECK(read({"a=0..4000000000", "b=0..4000000000", "c=0..4000000000"}) ==
        "the grid of --over has more than 10^18 cases; at most 1000000 are tried");
}

TEST_CASE("cases are numbered with the last axis the fastest") {
  const std::vector<Axis> axes = {{"P", {1, 2}}, {"M", {5, 6, 7}}};
  CHECK(cases_of(axes) == 6);
  CHECK(coordinates(axes, 4) == std::vector<std::size_t>{1, 1});
  CHECK(coordinates({}, 0).empty());
}

}  // namespace
}  // namespace stave
