#include "compiler/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace stave {

namespace {

constexpr std::array<std::uint32_t, 4> kMostOf = {kMaxDevices, kMaxStages, kMaxMicrobatches, kMaxSlices};

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

}  // namespace

Evaluator::Evaluator(const Code& code, Diagnostics& sink)
    : code_(code),
      sink_(&sink),
      slots_(code.slots.size()),
      lets_(code.lets.size()),
      let_done_(code.lets.size(), false) {}

std::string Evaluator::situation() const {
  std::string result;
  if (device_ != kNoDevice) result = fmt::format("on device {}", device_);
  for (std::size_t i = 0; i < loops_.size(); ++i)
    result += fmt::format("{}{} = {}", i > 0 ? ", " : (result.empty() ? "with " : ", with "), code_.slots[loops_[i]],
                          slots_[loops_[i]].text());
  return result;
}

std::string Evaluator::parameters() const {
  std::string result;
  for (const ParameterCode& parameter : code_.parameters)
    result += fmt::format("{}{} = {}", result.empty() ? "" : ", ", parameter.name, slots_[parameter.slot].text());
  return result;
}

void Evaluator::report(Diagnostic diagnostic) {
  const Span span = diagnostic.primary.span;
  for (const Span& each : reported_)
    if (each.source == span.source && each.begin < span.end && span.begin < each.end) return;
  reported_.push_back(span);
  sink_->add(std::move(diagnostic));
}

void Evaluator::fail(std::string_view kind, Span span, std::string message, std::string label, Label other) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  diagnostic.message = std::move(message);
  diagnostic.primary = {span, std::move(label)};
  if (other.span.valid()) diagnostic.labels.push_back(std::move(other));
  const std::string where = situation();
  if (!where.empty()) diagnostic.notes.push_back(where);
  report(std::move(diagnostic));
  throw Stop{};
}

void Evaluator::wrong_kind(TermId id, const char* needed, const Datum& found) {
  fail("wrong-kind", code_.spans[id], fmt::format("{} is needed here, and this is {}", needed, found.what()),
       found.text());
}

void Evaluator::out_of_steps(Span span) {
  fail("too-many-steps", span,
       fmt::format("this takes too long: more than {} steps of loops, functions and lists", budget_),
       "still running here");
}

Datum* Evaluator::take(std::int64_t n, Span span) {
  if (n > kMaxListLength)
    fail("list-too-long", span, fmt::format("a list of {} elements is written out here; at most {} can be", n,
                                            kMaxListLength));
  Datum* items = arena_.take(n);
  if (items == nullptr)
    fail("list-too-long", span, fmt::format("lists with more than {} elements in all", kMaxListElements));
  return items;
}

Rational Evaluator::number(TermId id) {
  const Datum datum = value(id);
  if (!datum.is_number()) wrong_kind(id, "a number", datum);
  return datum.rational();
}

bool Evaluator::truth(TermId id) {
  const Datum datum = value(id);
  if (!datum.is_condition()) wrong_kind(id, "a condition", datum);
  return datum.truth();
}

Datum Evaluator::list(TermId id) {
  const Datum datum = value(id);
  if (!datum.is_list()) wrong_kind(id, "a list", datum);
  return datum;
}

std::int64_t Evaluator::whole(TermId id, std::string_view what) {
  const Datum datum = value(id);
  if (datum.is_whole()) return datum.integer();
  if (!datum.is_number()) wrong_kind(id, "a number", datum);
  fail("not-whole", code_.spans[id], fmt::format("{} must be whole, and is {}", what, datum.text()));
}

std::uint32_t Evaluator::index(TermId id, std::string_view what, std::int64_t count) {
  const std::int64_t result = whole(id, what);
  if (result < 0 || result >= count)
    fail("index-outside", code_.spans[id], fmt::format("there is no {} {}: they run from 0 to {}", what, result,
                                                       count - 1));
  return static_cast<std::uint32_t>(result);
}

TermId Evaluator::op(TermId id) {
  for (;;) {
    const Term& term = code_[id];
    switch (term.kind) {
      case TermKind::Call:
        bind(term, code_.spans[id]);
        id = code_.functions[term.target].value;
        break;
      case TermKind::Conditional: id = operand(term, truth(operand(term, 1)) ? 0 : 2); break;
      default: return id;
    }
  }
}

void Evaluator::bind(const Term& term, Span span) {
  step(span);
  const FunctionCode& function = code_.functions[term.target];
  // The values first: one of them may call the same function.
  constexpr std::size_t kFew = 6;
  if (term.count <= kFew) {
    std::array<Datum, kFew> values;
    for (std::uint32_t i = 0; i < term.count; ++i) values[i] = value(operand(term, i));
    for (std::uint32_t i = 0; i < term.count; ++i) slots_[function.slots[i]] = values[i];
    return;
  }
  std::vector<Datum> values;
  for (std::uint32_t i = 0; i < term.count; ++i) values.push_back(value(operand(term, i)));
  for (std::uint32_t i = 0; i < term.count; ++i) slots_[function.slots[i]] = values[i];
}

Datum Evaluator::value(TermId id) {
  const Term& term = code_[id];
  switch (term.kind) {
    case TermKind::Number: return Datum::number(term.value);
    case TermKind::Slot: return slots_[term.target];
    case TermKind::Let: return let(term, id);
    case TermKind::Setting: return Datum::run(true, 0, count(static_cast<SettingKind>(term.target)));
    case TermKind::Negate: {
      const Datum datum = value(operand(term, 0));
      if (datum.is_whole()) return Datum::whole(-datum.integer());
      if (!datum.is_number()) wrong_kind(operand(term, 0), "a number", datum);
      return Datum::number(*subtract(0, datum.rational()));
    }
    case TermKind::Not: return Datum::condition(!truth(operand(term, 0)));
    case TermKind::Add:
    case TermKind::Subtract:
    case TermKind::Multiply:
    case TermKind::Divide:
    case TermKind::Div:
    case TermKind::Mod: return arithmetic(term, id);
    case TermKind::Equal:
    case TermKind::Unequal:
    case TermKind::Less:
    case TermKind::LessEqual:
    case TermKind::Greater:
    case TermKind::GreaterEqual: return compare(term, id);
    case TermKind::And: return Datum::condition(truth(operand(term, 0)) && truth(operand(term, 1)));
    case TermKind::Or: return Datum::condition(truth(operand(term, 0)) || truth(operand(term, 1)));
    case TermKind::Conditional: return value(operand(term, truth(operand(term, 1)) ? 0 : 2));
    case TermKind::Call:
      bind(term, code_.spans[id]);
      return value(code_.functions[term.target].value);
    case TermKind::Sum:
    case TermKind::Min:
    case TermKind::Max: return fold(term, id);
    case TermKind::StagesOf:
    case TermKind::SlicesOf:
    case TermKind::DeviceOf:
    case TermKind::Reversed:
    case TermKind::Len:
    case TermKind::Abs:
    case TermKind::Ceil:
    case TermKind::Floor:
    case TermKind::Element:
    case TermKind::Range: return builtin(term, id);
    case TermKind::List:
    case TermKind::Each: return written(term, id);
    case TermKind::Letter:
    case TermKind::CostOf:
    case TermKind::PairCost:
    case TermKind::Message:
    case TermKind::Metric: return spoken(term, id);
    case TermKind::Op:
    case TermKind::Pair:
    case TermKind::Next:
    case TermKind::Star:
    case TermKind::OpName:
    case TermKind::Cause: break;
  }
  STAVE_CHECK(false, "a term that has no value");
  return Datum();
}

Datum Evaluator::arithmetic(const Term& term, TermId id) {
  const Datum left = value(operand(term, 0));
  const Datum right = value(operand(term, 1));
  if (left.is_whole() && right.is_whole()) {
    const std::int64_t a = left.integer();
    const std::int64_t b = right.integer();
    std::int64_t result = 0;
    switch (term.kind) {
      case TermKind::Add:
        if (!__builtin_add_overflow(a, b, &result) && result != kLowest) return Datum::whole(result);
        break;
      case TermKind::Subtract:
        if (!__builtin_sub_overflow(a, b, &result) && result != kLowest) return Datum::whole(result);
        break;
      case TermKind::Multiply:
        if (!__builtin_mul_overflow(a, b, &result) && result != kLowest) return Datum::whole(result);
        break;
      case TermKind::Div:
        if (b > 0) return Datum::whole(a >= 0 ? a / b : -((-a + b - 1) / b));
        break;
      case TermKind::Mod:
        if (b > 0) {
          result = a % b;
          return Datum::whole(result < 0 ? result + b : result);
        }
        break;
      default: break;
    }
  }
  if (!left.is_number()) wrong_kind(operand(term, 0), "a number", left);
  if (!right.is_number()) wrong_kind(operand(term, 1), "a number", right);
  const Rational a = left.rational();
  const Rational b = right.rational();
  std::optional<Rational> result;
  switch (term.kind) {
    case TermKind::Add: result = add(a, b); break;
    case TermKind::Subtract: result = subtract(a, b); break;
    case TermKind::Multiply: result = multiply(a, b); break;
    case TermKind::Divide: result = divide(a, b); break;
    case TermKind::Div: result = div_euclid(a, b); break;
    case TermKind::Mod: result = mod_euclid(a, b); break;
    default: break;
  }
  if (result) return Datum::number(*result);
  const bool divides = term.kind == TermKind::Divide || term.kind == TermKind::Div || term.kind == TermKind::Mod;
  if (divides && b == Rational(0))
    fail("division-by-zero", code_.spans[operand(term, 1)], "a division by zero", "this is 0");
  fail("overflow", code_.spans[id],
       fmt::format("the result does not fit: numbers go to {}", std::numeric_limits<std::int64_t>::max()),
       fmt::format("of {} and {}", a.text(), b.text()));
}

Datum Evaluator::compare(const Term& term, TermId id) {
  const Datum left = value(operand(term, 0));
  const Datum right = value(operand(term, 1));
  if (term.kind == TermKind::Equal || term.kind == TermKind::Unequal) {
    if (left.is_number() != right.is_number() || left.is_condition() != right.is_condition())
      fail("wrong-kind", code_.spans[id], fmt::format("{} is compared with {}", left.what(), right.what()));
    return Datum::condition(equal(left, right, [&] { step(code_.spans[id]); }) == (term.kind == TermKind::Equal));
  }
  if (!left.is_number()) wrong_kind(operand(term, 0), "a number", left);
  if (!right.is_number()) wrong_kind(operand(term, 1), "a number", right);
  const bool whole = left.is_whole() && right.is_whole();
  const std::strong_ordering order =
      whole ? left.integer() <=> right.integer() : left.rational() <=> right.rational();
  switch (term.kind) {
    case TermKind::Less: return Datum::condition(order < 0);
    case TermKind::LessEqual: return Datum::condition(order <= 0);
    case TermKind::Greater: return Datum::condition(order > 0);
    default: return Datum::condition(order >= 0);
  }
}

Datum Evaluator::let(const Term& term, TermId id) {
  const std::uint32_t number = term.target;
  if (let_done_[number]) return lets_[number];
  step(code_.spans[id]);
  const Datum result = value(code_.lets[number].value);
  // Later, lists lie in room that is given back.
  if (!keeping_) return result;
  let_done_[number] = true;
  return lets_[number] = result;
}

void Evaluator::evaluate_lets() {
  Diagnostics scratch;
  Diagnostics* sink = sink_;
  sink_ = &scratch;
  const std::vector<Span> reported = reported_;
  for (std::size_t i = 0; i < lets_.size(); ++i) {
    try {
      finish_let(i);
    } catch (const Stop&) {
      loops_.clear();
    }
  }
  sink_ = sink;
  reported_ = reported;
}

void Evaluator::finish_let(std::size_t i) {
  if (let_done_[i]) return;
  keeping_ = true;
  try {
    lets_[i] = value(code_.lets[i].value);
    let_done_[i] = true;
  } catch (const Stop&) {
    keeping_ = false;
    throw;
  }
  keeping_ = false;
}

void Evaluator::finish_lets() {
  for (std::size_t i = 0; i < lets_.size(); ++i) finish_let(i);
}

Datum Evaluator::fold(const Term& term, TermId id) {
  std::optional<Datum> result;
  const auto take_in = [&](const Datum& datum, TermId at) {
    if (!datum.is_number()) wrong_kind(at, "a number", datum);
    if (!result) {
      result = datum;
    } else if (term.kind == TermKind::Sum) {
      std::int64_t whole = 0;
      if (result->is_whole() && datum.is_whole() &&
          !__builtin_add_overflow(result->integer(), datum.integer(), &whole) && whole != kLowest) {
        result = Datum::whole(whole);
        return;
      }
      const std::optional<Rational> sum = add(result->rational(), datum.rational());
      if (!sum) fail("overflow", code_.spans[id], "the sum does not fit");
      result = Datum::number(*sum);
    } else {
      const bool less = datum.rational() < result->rational();
      if (less == (term.kind == TermKind::Min)) result = datum;
    }
  };
  for (std::uint32_t i = 0; i < term.count; ++i) {
    const TermId each = operand(term, i);
    const Term& inner = code_[each];
    if (inner.kind == TermKind::Each) {
      const Datum over = list(operand(inner, 1));
      enter_loop(inner.target);
      for (std::int64_t k = 0; k < over.length(); ++k) {
        step(code_.spans[each]);
        slots_[inner.target] = over[k];
        take_in(value(operand(inner, 0)), operand(inner, 0));
      }
      leave_loop();
      continue;
    }
    const Datum datum = value(each);
    if (!datum.is_list() || term.count > 1) {
      take_in(datum, each);
      continue;
    }
    const std::int64_t length = datum.length();
    if (datum.kind() != DatumKind::Written && length > 2 && term.kind != TermKind::Sum) {
      take_in(datum[0], each);
      take_in(datum[length - 1], each);
      continue;
    }
    for (std::int64_t k = 0; k < length; ++k) {
      step(code_.spans[each]);
      take_in(datum[k], each);
    }
  }
  if (result) return *result;
  if (term.kind == TermKind::Sum) return Datum::whole(0);
  fail("empty-list", code_.spans[id], "an empty list has neither a least nor a greatest element");
}

Datum Evaluator::written(const Term& term, TermId id) {
  const Span span = code_.spans[id];
  if (term.kind == TermKind::Each) {
    const Datum over = list(operand(term, 1));
    Datum* items = take(over.length(), span);
    enter_loop(term.target);
    for (std::int64_t i = 0; i < over.length(); ++i) {
      step(span);
      slots_[term.target] = over[i];
      items[i] = value(operand(term, 0));
    }
    leave_loop();
    return Datum::written(items, over.length());
  }
  if (term.count == 1 && code_[operand(term, 0)].kind == TermKind::Each) return value(operand(term, 0));
  Datum* items = take(term.count, span);
  for (std::uint32_t i = 0; i < term.count; ++i) items[i] = value(operand(term, i));
  return Datum::written(items, term.count);
}

Datum Evaluator::builtin(const Term& term, TermId id) {
  const TermId first = operand(term, 0);
  switch (term.kind) {
    case TermKind::StagesOf: return stages_on(index(first, "device", devices()));
    case TermKind::SlicesOf:
      return Datum::run(true, 0, slices_of(index(first, "microbatch", count(SettingKind::Microbatches))));
    case TermKind::DeviceOf: {
      const std::uint32_t stage = index(first, "stage", stages());
      const Placement& placed = placement();
      if (term.count > 1)
        return Datum::whole(placed.of(stage, index(operand(term, 1), "microbatch", count(SettingKind::Microbatches))));
      for (std::uint32_t m = 1; m < placed.microbatches; ++m)
        if (placed.of(stage, m) != placed.of(stage, 0))
          fail("several-devices", code_.spans[id],
               fmt::format("stage {} is on device {} for microbatch 0 and on device {} for microbatch {}", stage,
                           placed.of(stage, 0), placed.of(stage, m), m),
               "say for which microbatch");
      return Datum::whole(placed.of(stage, 0));
    }
    case TermKind::Reversed: {
      const Datum over = list(first);
      const std::int64_t length = over.length();
      if (over.kind() != DatumKind::Written) {
        const bool rising = over.kind() == DatumKind::Falling;
        return Datum::run(rising, length == 0 ? 0 : over[length - 1].integer(), length);
      }
      Datum* items = take(length, code_.spans[id]);
      for (std::int64_t i = 0; i < length; ++i) items[i] = over[length - 1 - i];
      return Datum::written(items, length);
    }
    case TermKind::Len: return Datum::whole(list(first).length());
    case TermKind::Abs: {
      const Rational of = number(first);
      return Datum::number(of < Rational(0) ? *subtract(0, of) : of);
    }
    case TermKind::Ceil: return Datum::whole(ceil(number(first)));
    case TermKind::Floor: return Datum::whole(floor(number(first)));
    case TermKind::Element: {
      const Datum over = list(first);
      const TermId second = operand(term, 1);
      const std::int64_t i = whole(second, "the index of a list");
      if (i < 0 || i >= over.length())
        fail("index-outside", code_.spans[second],
             over.length() == 0 ? fmt::format("there is no element {}: the list is empty", i)
                                : fmt::format("there is no element {}: they run from 0 to {}", i, over.length() - 1),
             "", {code_.spans[first], over.text()});
      return over[i];
    }
    default: {
      const std::int64_t from = whole(first, "an end of a range");
      const std::int64_t to = whole(operand(term, 1), "an end of a range");
      std::int64_t length = 0;
      if (__builtin_sub_overflow(to, from, &length))
        fail("overflow", code_.spans[id], "the range is too long: its length does not fit");
      return Datum::run(true, from, std::max<std::int64_t>(0, length));
    }
  }
}

Datum Evaluator::spoken(const Term& term, TermId id) {
  STAVE_CHECK(spoken_ != nullptr, "a cost or a result is asked for where there is none");
  const Span span = code_.spans[id];
  switch (term.kind) {
    case TermKind::Letter: return Datum::number(spoken_->letter(term.target, span));
    case TermKind::PairCost:
      return Datum::number(
          spoken_->pair(code_[operand(term, 0)].target, code_[operand(term, 1)].target, span));
    case TermKind::Message: {
      if (term.count == 0) return Datum::number(spoken_->message(term.target, span));
      const std::uint32_t source = index(operand(term, 0), "device", devices());
      const std::uint32_t target = index(operand(term, 1), "device", devices());
      return Datum::number(spoken_->message(term.target, source, target, span));
    }
    case TermKind::Metric: return Datum::number(spoken_->metric(id));
    default: break;
  }
  std::array<std::uint32_t, kMaxIndices> at = {};
  const OpCode& op = code_.ops[term.target];
  for (std::uint32_t i = 0; i < term.count; ++i) {
    constexpr std::int64_t kAny = kMaxOps;
    const IndexRole role = op.indices[i].role;
    const bool counted = role != IndexRole::Other;
    constexpr std::array<SettingKind, 4> kKinds = {SettingKind::Stages, SettingKind::Microbatches,
                                                   SettingKind::Slices, SettingKind::Devices};
    at[i] = index(operand(term, i), op.indices[i].name,
                  counted ? std::int64_t(count(kKinds[static_cast<std::size_t>(role)])) : kAny);
  }
  return Datum::number(spoken_->cost(term.target, at, span));
}

std::uint32_t Evaluator::count(SettingKind kind) {
  const std::size_t i = static_cast<std::size_t>(kind);
  if (count_state_[i] == State::Done) return counts_[i];
  const std::optional<SettingCode>& setting = code_.settings[i];
  if (!setting) {
    // Slices alone may be left out.
    counts_[i] = 1;
    count_state_[i] = State::Done;
    return 1;
  }
  const Span span = code_.spans[setting->value];
  if (count_state_[i] == State::Open)
    fail("circular", span, fmt::format("the number of {} depends on itself", kSettings[i]));
  count_state_[i] = State::Open;
  std::int64_t result = 0;
  try {
    const Datum datum = value(setting->value);
    if (datum.is_list()) {
      result = read_sizes(kind, setting->value, datum, kMostOf[i]);
    } else if (!datum.is_whole()) {
      if (!datum.is_number()) wrong_kind(setting->value, "a number", datum);
      fail("not-whole", span, fmt::format("the number of {} must be whole, and is {}", kSettings[i], datum.text()));
    } else {
      result = datum.integer();
    }
    if (result < 1 || result > kMostOf[i])
      fail("count", span, fmt::format("the number of {} is {}; it must be from 1 to {}", kSettings[i], result,
                                      kMostOf[i]),
           parameters());
  } catch (const Stop&) {
    count_state_[i] = State::New;
    throw;
  }
  counts_[i] = static_cast<std::uint32_t>(result);
  count_state_[i] = State::Done;
  return counts_[i];
}

}  // namespace stave
