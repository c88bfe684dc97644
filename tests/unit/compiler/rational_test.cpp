#include "compiler/rational.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>

using namespace stave;

namespace {

constexpr std::int64_t kMost = INT64_MAX;

Rational fraction(std::int64_t numerator, std::int64_t denominator) {
  const auto result = Rational::make(numerator, denominator);
  REQUIRE(result);
  return *result;
}

}  // namespace

TEST_CASE("a fraction is in lowest terms with its sign above") {
  CHECK(fraction(6, 4).text() == "3/2");
  CHECK(fraction(6, -4).text() == "-3/2");
  CHECK(fraction(-6, -3).text() == "2");
  CHECK(fraction(0, -5) == Rational(0));
  CHECK(fraction(0, 7).denominator() == 1);
  CHECK(!Rational::make(1, 0));
  CHECK(Rational::make(Int128(kMost) * 2, 2) == Rational(kMost));
  CHECK(!Rational::make(Int128(kMost) + 1, 1));
  CHECK(!Rational::make(-Int128(kMost) - 1, 1));
  CHECK(!Rational::make(1, Int128(kMost) + 1));
  CHECK(Rational::make(-Int128(kMost), 1) == Rational(-kMost));
}

TEST_CASE("every operation says when it overflows") {
  CHECK(!add(Rational(kMost), Rational(1)));
  CHECK(!subtract(Rational(-kMost), Rational(1)));
  CHECK(!multiply(Rational(kMost), Rational(2)));
  CHECK(multiply(Rational(kMost), fraction(1, kMost)) == Rational(1));
  CHECK(!divide(Rational(1), Rational(0)));
  CHECK(!divide(fraction(1, kMost), Rational(2)));
  CHECK(!div_euclid(Rational(1), Rational(0)));
  CHECK(!mod_euclid(Rational(1), Rational(0)));
  CHECK(!add(fraction(1, kMost), fraction(1, kMost - 1)));
  CHECK(add(fraction(kMost - 1, 2), fraction(kMost - 1, 2)) == Rational(kMost - 1));
}

TEST_CASE("div and mod are the integer pair") {
  CHECK(div_euclid(Rational(7), Rational(2)) == Rational(3));
  CHECK(div_euclid(Rational(-7), Rational(2)) == Rational(-4));
  CHECK(mod_euclid(Rational(-7), Rational(2)) == Rational(1));
  CHECK(div_euclid(fraction(7, 2), Rational(1)) == Rational(3));
  CHECK(mod_euclid(fraction(7, 2), Rational(1)) == fraction(1, 2));
  CHECK(div_euclid(Rational(7), Rational(-3)) == Rational(-2));
  CHECK(mod_euclid(Rational(7), Rational(-3)) == Rational(1));
  CHECK(div_euclid(Rational(-7), Rational(-3)) == Rational(3));
  CHECK(mod_euclid(Rational(-7), Rational(-3)) == Rational(2));
  CHECK(div_euclid(fraction(7, 2), Rational(-1)) == Rational(-3));
  CHECK(mod_euclid(fraction(7, 2), Rational(-1)) == fraction(1, 2));
  CHECK(floor(fraction(-1, 2)) == -1);
  CHECK(ceil(fraction(-1, 2)) == 0);
  CHECK(floor(fraction(1, 2)) == 0);
  CHECK(ceil(fraction(1, 2)) == 1);
  CHECK(floor(Rational(-3)) == -3);
  CHECK(ceil(Rational(-3)) == -3);
  CHECK(floor(fraction(-kMost, 2)) == -(kMost / 2) - 1);
}

TEST_CASE("decimal numbers are exact") {
  CHECK(parse_decimal("0.1") == fraction(1, 10));
  CHECK(parse_decimal("2.50") == fraction(5, 2));
  CHECK(parse_decimal("007") == Rational(7));
  CHECK(parse_decimal("1.000000000000000000000000000000000000000000") == Rational(1));
  CHECK(parse_decimal("9223372036854775807") == Rational(kMost));
  CHECK(!parse_decimal("9223372036854775808"));
  CHECK(!parse_decimal("0.0000000000000000001"));
  CHECK(!parse_decimal("1000000000000000000000000000000000000000000000000000"));
}

TEST_CASE("the laws of fractions hold where nothing overflows") {
  const auto any = [](std::int32_t numerator, std::int16_t denominator) {
    return *Rational::make(numerator, denominator == 0 ? 1 : denominator);
  };
  CHECK(rc::check("add and subtract, multiply and divide",
                  [&](std::int32_t a, std::int16_t b, std::int32_t c, std::int16_t d) {
                    const Rational x = any(a, b);
                    const Rational y = any(c, d);
                    RC_ASSERT(subtract(*add(x, y), y) == x);
                    RC_ASSERT(add(x, y) == add(y, x));
                    if (y != Rational(0)) RC_ASSERT(multiply(*divide(x, y), y) == x);
                    RC_ASSERT((x < y) == (subtract(x, y)->numerator() < 0));
                    RC_ASSERT(Rational(floor(x)) <= x);
                    RC_ASSERT(x <= Rational(ceil(x)));
                  }));
  CHECK(rc::check("a is b * (a div b) + a mod b", [&](std::int32_t a, std::int16_t b, std::int16_t c) {
    const Rational x = any(a, b);
    const Rational y = Rational(c);
    RC_PRE(c != 0);
    const Rational rest = *mod_euclid(x, y);
    RC_ASSERT(add(*multiply(y, *div_euclid(x, y)), rest) == x);
    RC_ASSERT(rest >= Rational(0));
    RC_ASSERT(rest < (c > 0 ? y : *subtract(Rational(0), y)));
  }));
}
