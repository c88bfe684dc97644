// Datum: what an expression amounts to while a schedule is expanded: a number, a condition or a list.
// Lists of consecutive numbers are two ends, whatever their length; other lists lie in an Arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/rational.h"

namespace stave {

/// Most elements of a list that is written out, and of all such lists alive at once.
inline constexpr std::int64_t kMaxListLength = std::int64_t(1) << 22;
inline constexpr std::int64_t kMaxListElements = std::int64_t(1) << 23;

enum class DatumKind : std::uint8_t {
  Number,
  Condition,
  /// `from`, `from` + 1, ...
  Rising,
  /// `from`, `from` - 1, ...
  Falling,
  /// Elements in an Arena.
  Written,
};

class Datum {
 public:
  Datum() = default;
  static Datum number(Rational value) {
    Datum result;
    result.a_ = value.numerator();
    result.b_ = value.denominator();
    return result;
  }
  static Datum whole(std::int64_t value) {
    Datum result;
    result.a_ = value;
    return result;
  }
  static Datum condition(bool value) {
    Datum result;
    result.kind_ = DatumKind::Condition;
    result.a_ = value ? 1 : 0;
    return result;
  }
  static Datum run(bool rising, std::int64_t from, std::int64_t length) {
    Datum result;
    result.kind_ = rising ? DatumKind::Rising : DatumKind::Falling;
    result.a_ = from;
    result.b_ = length;
    return result;
  }
  static Datum written(const Datum* items, std::int64_t length) {
    Datum result;
    result.kind_ = DatumKind::Written;
    result.items_ = items;
    result.b_ = length;
    return result;
  }

  DatumKind kind() const { return kind_; }
  bool is_number() const { return kind_ == DatumKind::Number; }
  bool is_condition() const { return kind_ == DatumKind::Condition; }
  bool is_list() const { return kind_ >= DatumKind::Rising; }
  bool is_whole() const { return kind_ == DatumKind::Number && b_ == 1; }

  /// Of a whole number.
  std::int64_t integer() const { return a_; }
  /// Of a condition.
  bool truth() const { return a_ != 0; }
  /// Of a number.
  Rational rational() const { return b_ == 1 ? Rational(a_) : *Rational::make(a_, b_); }

  /// Of a list.
  std::int64_t length() const { return b_; }
  Datum operator[](std::int64_t i) const {
    if (kind_ == DatumKind::Written) return items_[i];
    return whole(kind_ == DatumKind::Rising ? a_ + i : a_ - i);
  }

  /// "3", "7/2", "true", "[0, 1, 2]"; long lists are cut.
  std::string text() const;
  /// "a number", "a condition", "a list".
  const char* what() const;

 private:
  DatumKind kind_ = DatumKind::Number;
  union {
    std::int64_t a_ = 0;
    const Datum* items_;
  };
  std::int64_t b_ = 1;
};

/// Equal numbers, equal conditions, lists of equal elements. Calls `step` for each element that it looks at: lists that
/// share their elements may have far more than there is room for.
bool equal(const Datum& a, const Datum& b, const std::function<void()>& step);

/// Room for the elements of lists, given back in the reverse order of its taking.
class Arena {
 public:
  struct Mark {
    std::size_t blocks = 0;
    std::size_t used = 0;
    std::int64_t elements = 0;
  };
  /// None if more than kMaxListElements would be alive.
  Datum* take(std::int64_t n);
  Mark mark() const { return {blocks_.size(), used_, elements_}; }
  void release(const Mark& mark) {
    if (elements_ != mark.elements) give_back(mark);
  }

 private:
  struct Block {
    std::unique_ptr<Datum[]> items;
    std::size_t size = 0;
  };
  void give_back(const Mark& mark);

  std::vector<Block> blocks_;
  /// Taken of the last block.
  std::size_t used_ = 0;
  std::int64_t elements_ = 0;
};

}  // namespace stave
