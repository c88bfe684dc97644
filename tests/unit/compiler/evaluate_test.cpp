#include "compiled.h"

using namespace stave;

namespace {

/// The value of an expression under P = 4, M = 10, as a cost of F.
std::string value(const std::string& expression, const std::string& lets = "") {
  const Built built = build(
      "schedule v(P = 4, M = 10, sizes = [3, 1, 2])\ndevices P\nstages 2 * P\nmicrobatches M\n"
      "place stage s on device s mod P\n" +
      lets + "\ncost F = " + expression +
      "\non device d { for s in stages(d) { for m in microbatches { F(s, m) B(s, m) } } }\n");
  if (!built.expanded.schedule) return built.said();
  return built.cost("F(0, 0)");
}

}  // namespace

TEST_CASE("numbers are exact") {
  CHECK(value("1 / 3 + 1 / 6") == "1/2");
  CHECK(value("0.1 + 0.2") == "3/10");
  CHECK(value("2 - 1 / 2 * 3") == "1/2");
  CHECK(value("7 div 2 + 7 mod 2") == "4");
  CHECK(value("(0 - 7) mod 4") == "1");
  CHECK(value("9 + (0 - 7) div 4") == "7");
  CHECK(value("7 / 2 div 1") == "3");
  CHECK(value("7 mod (0 - 3) + 10 * (4 + 7 div (0 - 3))") == "21");
  CHECK(value("abs(1 - 3) + ceil(5 / 2) + floor(5 / 2)") == "7");
}

TEST_CASE("div and mod rank with times, from left to right") {
  CHECK(value("100 div 7 * 7 + 100 mod 7") == "100");
  CHECK(value("2 * 3 mod 4") == "2");
}

TEST_CASE("lists") {
  CHECK(value("len(0 .. M)") == "10");
  CHECK(value("len(5 .. 2)") == "0");
  CHECK(value("sum(0 .. M)") == "45");
  CHECK(value("sum(reversed(0 .. M)) + reversed(0 .. M)[0]") == "54");
  CHECK(value("sizes[0] * 100 + sizes[1] * 10 + sizes[2]") == "312");
  CHECK(value("sum(i * i for i in 1 .. 4)") == "14");
  CHECK(value("[i * i for i in 0 .. M][3]") == "9");
  CHECK(value("min(sizes) + max(sizes) * 10 + min(4, 2, 8) * 100") == "231");
  CHECK(value("max(2 .. 9) + min(reversed(2 .. 9))") == "10");
  CHECK(value("sum([])") == "0");
  CHECK(value("1 if [0, 1, 2] == 0 .. 3 else 2") == "1");
}

TEST_CASE("a list of very many numbers is two ends") {
  CHECK(value("len(0 .. 1000000000000000)") == "1000000000000000");
  CHECK(value("(0 .. 1000000000000000)[999999999999999]") == "999999999999999");
  CHECK(value("max(0 .. 1000000000000000)") == "999999999999999");
}

TEST_CASE("conditions") {
  CHECK(value("1 if P == 4 and not M == 4 else 2") == "1");
  CHECK(value("1 if P == 4 or 1 / 0 == 1 else 2") == "1");
  CHECK(value("1 if 0.5 < 2 / 3 and 2 <= 2 and 3 > 2 and 2 >= 2 and 1 != 2 else 2") == "1");
  CHECK(value("P == 4") == "7:10 `P == 4`: a number is needed here, and this is a condition [wrong-kind]\n");
}

TEST_CASE("places and counts") {
  CHECK(value("len(stages) * 10 + len(devices)") == "84");
  CHECK(value("stages(1)[0] * 10 + stages(1)[1]") == "15");
  CHECK(value("device(6) + len(microbatches) + len(slices)") == "13");
}

TEST_CASE("lets and functions") {
  CHECK(value("f(f(2)) + g", "let f(k) = k * P\nlet g = f(1) + h\nlet h = 100") == "136");
  CHECK(value("f(1) - f(0)", "let f(k) = sum(k + i for i in 0 .. 3)") == "3");
}

TEST_CASE("values that do not exist say why") {
  CHECK(value("1 / (P - 4)") == "7:15 `P - 4`: a division by zero [division-by-zero]\n");
  CHECK(value("9000000000000000000 * P") ==
        "7:10 `9000000000000000000 * P`: the result does not fit: numbers go to 9223372036854775807 [overflow]\n");
  CHECK(value("sizes[3]") ==
        "7:16 `3`: there is no element 3: they run from 0 to 2 [index-outside]\n  7:10 `sizes`: [3, 1, 2]\n");
  CHECK(value("min([])") ==
        "7:10 `min([])`: an empty list has neither a least nor a greatest element [empty-list]\n");
  CHECK(value("len([i for i in 0 .. 1000000000000000])") ==
        "7:15 `i for i in 0 .. 1000000000000000`: a list of 1000000000000000 elements is written out here; at most "
        "4194304 can be [list-too-long]\n");
  CHECK(value("sizes[1 / 2]") ==
        "7:16 `1 / 2`: the index of a list must be whole, and is 1/2 [not-whole]\n");
}

TEST_CASE("lists of the same list many times are compared in bounded time") {
  std::string lets = "let l0 = [1, 2, 3]\n";
  for (int i = 1; i < 40; ++i) lets += fmt::format("let l{} = [l{}, l{}]\n", i, i - 1, i - 1);
  CHECK(value("1 if l39 == l39 else 2", lets).find("[too-many-steps]") != std::string::npos);
  CHECK(value("1 if l9 == l9 and l9 != l8 else 2", lets) == "1");
  CHECK(value("1 if [0 .. 1000000000000, 1 .. 3] == [0 .. 1000000000000, [1, 2]] else 2") == "1");
}

TEST_CASE("functions that double their work at each step end in an error") {
  std::string lets = "let f0(k) = k + 1\n";
  for (int i = 1; i < 40; ++i)
    lets += fmt::format("let f{}(k) = f{}(k) + f{}(k)\n", i, i - 1, i - 1);
  CHECK(value("f39(1)", lets).find("[too-many-steps]") != std::string::npos);
}
