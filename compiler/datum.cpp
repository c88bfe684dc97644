#include "compiler/datum.h"

#include <algorithm>

namespace stave {

namespace {

void append_text(const Datum& datum, std::string& to, int depth) {
  constexpr std::int64_t kShown = 8;
  switch (datum.kind()) {
    case DatumKind::Number: to += datum.rational().text(); return;
    case DatumKind::Condition: to += datum.truth() ? "true" : "false"; return;
    case DatumKind::Rising:
    case DatumKind::Falling:
    case DatumKind::Written: break;
  }
  to += "[";
  for (std::int64_t i = 0; i < datum.length(); ++i) {
    if (i > 0) to += ", ";
    if (i == kShown || depth == 3) {
      to += "...";
      break;
    }
    append_text(datum[i], to, depth + 1);
  }
  to += "]";
}

}  // namespace

std::string Datum::text() const {
  std::string result;
  append_text(*this, result, 0);
  return result;
}

const char* Datum::what() const {
  if (is_number()) return "a number";
  return is_condition() ? "a condition" : "a list";
}

bool equal(const Datum& a, const Datum& b, const std::function<void()>& step) {
  if (a.is_number() != b.is_number() || a.is_condition() != b.is_condition()) return false;
  if (a.is_number()) return a.rational() == b.rational();
  if (a.is_condition()) return a.truth() == b.truth();
  if (a.length() != b.length()) return false;
  if (a.length() == 0) return true;
  if (a.kind() == b.kind() && a.kind() != DatumKind::Written) return a[0].integer() == b[0].integer();
  // Elements nest as deep as the expressions that wrote them, which check.h bounds.
  for (std::int64_t i = 0; i < a.length(); ++i) {
    step();
    if (!equal(a[i], b[i], step)) return false;
  }
  return true;
}

Datum* Arena::take(std::int64_t n) {
  constexpr std::size_t kBlock = 4096;
  if (elements_ + n > kMaxListElements) return nullptr;
  const std::size_t size = static_cast<std::size_t>(n);
  if (blocks_.empty() || blocks_.back().size - used_ < size) {
    // What is left of the block before is not used again until it is released.
    Block block;
    block.size = std::max(kBlock, size);
    block.items = std::make_unique<Datum[]>(block.size);
    blocks_.push_back(std::move(block));
    used_ = 0;
  }
  Datum* result = blocks_.back().items.get() + used_;
  used_ += size;
  elements_ += n;
  return result;
}

void Arena::give_back(const Mark& mark) {
  blocks_.resize(mark.blocks);
  used_ = mark.used;
  elements_ = mark.elements;
}

}  // namespace stave
