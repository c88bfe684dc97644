// Rational: exact arithmetic on fractions of 64-bit whole numbers. Every operation says when it overflows.
#pragma once

#include <compare>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

namespace stave {

/// GCC and Clang have it on every machine that stave runs on; no standard does.
__extension__ typedef __int128 Int128;

class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(std::int64_t whole) : numerator_(whole) {}

  /// numerator / denominator in lowest terms; none if the denominator is 0 or the result does not fit.
  static std::optional<Rational> make(Int128 numerator, Int128 denominator);

  constexpr std::int64_t numerator() const { return numerator_; }
  /// At least 1.
  constexpr std::int64_t denominator() const { return denominator_; }
  constexpr bool whole() const { return denominator_ == 1; }
  double to_double() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }
  /// "3", "7/2".
  std::string text() const;

  friend constexpr bool operator==(Rational, Rational) = default;
  friend std::strong_ordering operator<=>(Rational a, Rational b);

 private:
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

/// The exact value of `12` or `0.25`: digits, perhaps a point and more digits. None if it does not fit.
std::optional<Rational> parse_decimal(std::string_view text);

/// None on overflow, or on division by zero.
std::optional<Rational> add(Rational a, Rational b);
std::optional<Rational> subtract(Rational a, Rational b);
std::optional<Rational> multiply(Rational a, Rational b);
std::optional<Rational> divide(Rational a, Rational b);
/// The integer pair of Euclid: a = b * div + mod with a whole `div` and 0 <= mod < |b|. So `div` is a / b rounded down
/// for b > 0, and up for b < 0. None if b is 0.
std::optional<Rational> div_euclid(Rational a, Rational b);
std::optional<Rational> mod_euclid(Rational a, Rational b);
std::int64_t floor(Rational a);
std::int64_t ceil(Rational a);

}  // namespace stave
