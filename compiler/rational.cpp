#include "compiler/rational.h"

namespace stave {

namespace {

using Wide = Int128;

Wide gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

}  // namespace

std::optional<Rational> Rational::make(Wide numerator, Wide denominator) {
  if (denominator == 0) return std::nullopt;
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (denominator != 1) {
    const Wide common = gcd(numerator, denominator);
    numerator /= common;
    denominator /= common;
  }
  // The most negative number is left out, so that a value can always be negated.
  if (numerator > INT64_MAX || numerator < -Wide(INT64_MAX) || denominator > INT64_MAX) return std::nullopt;
  Rational result;
  result.numerator_ = static_cast<std::int64_t>(numerator);
  result.denominator_ = static_cast<std::int64_t>(denominator);
  return result;
}

std::string Rational::text() const {
  std::string result = std::to_string(numerator_);
  if (denominator_ != 1) result += "/" + std::to_string(denominator_);
  return result;
}

std::strong_ordering operator<=>(Rational a, Rational b) {
  return Wide(a.numerator_) * b.denominator_ <=> Wide(b.numerator_) * a.denominator_;
}

std::optional<Rational> parse_decimal(std::string_view text) {
  // Zeros behind the last digit after the point say nothing.
  if (text.find('.') != std::string_view::npos)
    while (text.back() == '0') text.remove_suffix(1);
  // Numerator and denominator are brought to lowest terms at the end, so they may be larger than the result.
  constexpr Wide kLimit = Wide(1) << 100;
  Wide numerator = 0;
  Wide denominator = 1;
  bool fraction = false;
  for (const char c : text) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    numerator = numerator * 10 + (c - '0');
    if (fraction) denominator *= 10;
    if (numerator > kLimit || denominator > kLimit) return std::nullopt;
  }
  return Rational::make(numerator, denominator);
}

std::optional<Rational> add(Rational a, Rational b) {
  return Rational::make(Wide(a.numerator()) * b.denominator() + Wide(b.numerator()) * a.denominator(),
                        Wide(a.denominator()) * b.denominator());
}

std::optional<Rational> subtract(Rational a, Rational b) {
  return Rational::make(Wide(a.numerator()) * b.denominator() - Wide(b.numerator()) * a.denominator(),
                        Wide(a.denominator()) * b.denominator());
}

std::optional<Rational> multiply(Rational a, Rational b) {
  return Rational::make(Wide(a.numerator()) * b.numerator(), Wide(a.denominator()) * b.denominator());
}

std::optional<Rational> divide(Rational a, Rational b) {
  return Rational::make(Wide(a.numerator()) * b.denominator(), Wide(a.denominator()) * b.numerator());
}

std::optional<Rational> div_euclid(Rational a, Rational b) {
  const std::optional<Rational> quotient = divide(a, b);
  if (!quotient) return std::nullopt;
  return Rational(b > Rational(0) ? floor(*quotient) : ceil(*quotient));
}

std::optional<Rational> mod_euclid(Rational a, Rational b) {
  const std::optional<Rational> quotient = div_euclid(a, b);
  if (!quotient) return std::nullopt;
  const std::optional<Rational> product = multiply(b, *quotient);
  return product ? subtract(a, *product) : std::nullopt;
}

std::int64_t floor(Rational a) {
  const std::int64_t quotient = a.numerator() / a.denominator();
  return a.numerator() % a.denominator() < 0 ? quotient - 1 : quotient;
}

std::int64_t ceil(Rational a) {
  const std::int64_t quotient = a.numerator() / a.denominator();
  return a.numerator() % a.denominator() > 0 ? quotient + 1 : quotient;
}

}  // namespace stave
