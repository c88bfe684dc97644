// Evaluator: the values of a Code's expressions under one set of parameters, the counts of its settings, and its places.
// Which statements are run, and what becomes of the ops, is expand_order's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/code.h"
#include "compiler/datum.h"
#include "compiler/diagnostics.h"
#include "compiler/placement.h"
#include "core/sizes.h"

namespace stave {

/// Thrown inside the compiler when an expression has no value; the diagnostic is in the sink by then.
struct Stop {};

/// What cost lines and `expect` speak of beside variables. Each returns a value or throws.
class Spoken {
 public:
  virtual ~Spoken() = default;
  virtual Rational letter(std::uint32_t op, Span span) = 0;
  virtual Rational cost(std::uint32_t op, const std::array<std::uint32_t, kMaxIndices>& index, Span span) = 0;
  virtual Rational pair(std::uint32_t op, std::uint32_t other, Span span) = 0;
  virtual Rational message(std::uint32_t payload, Span span) = 0;
  /// Of a message from one device to another.
  virtual Rational message(std::uint32_t payload, std::uint32_t source, std::uint32_t target, Span span) = 0;
  virtual Rational metric(TermId term) = 0;
};

class Evaluator {
 public:
  Evaluator(const Code& code, Diagnostics& sink);

  /// Errors: a diagnostic, and Stop.
  Datum value(TermId id);
  Rational number(TermId id);
  bool truth(TermId id);
  std::int64_t whole(TermId id, std::string_view what);
  /// `what` is said in an error: "a device". Errors: not whole, not in 0 .. count - 1.
  std::uint32_t index(TermId id, std::string_view what, std::int64_t count);
  Datum list(TermId id);
  /// The Op term that an op expression comes to, the variables of its functions set.
  TermId op(TermId id);

  std::uint32_t count(SettingKind kind);
  std::uint32_t devices() { return count(SettingKind::Devices); }
  std::uint32_t stages() { return count(SettingKind::Stages); }
  /// Slices that `microbatch` has; of those of an op's index, which are as many as any has, it takes the first.
  std::uint32_t slices_of(std::uint32_t microbatch);
  bool slices_differ();
  /// What the settings give in lists, each of them and all together checked.
  const Sizes& sizes();
  const Placement& placement();
  /// The stages on a device, for some microbatch at least, rising.
  Datum stages_on(std::uint32_t device);

  void set(std::uint32_t slot, const Datum& value) { slots_[slot] = value; }
  const Datum& get(std::uint32_t slot) const { return slots_[slot]; }
  /// Lets that can be evaluated are; the others wait for `finish_lets`, or say why they have no value when used.
  void evaluate_lets();
  /// Errors: those of the lets that are left.
  void finish_lets();

  /// Counts a turn of a loop; an error beyond the budget.
  void step(Span span) {
    if (++steps_ > budget_) out_of_steps(span);
  }
  void add_budget(std::uint64_t steps) { budget_ += steps; }
  bool out_of_budget() const { return steps_ > budget_; }

  Arena& arena() { return arena_; }
  Diagnostics& sink() { return *sink_; }
  const Code& code() const { return code_; }
  void speak(Spoken* spoken) { spoken_ = spoken; }
  /// What `f` returns while `spoken` speaks.
  template <class F>
  auto speaking(Spoken& spoken, F&& f) {
    Spoken* const before = std::exchange(spoken_, &spoken);
    struct Back {
      Spoken*& to;
      Spoken* from;
      ~Back() { to = from; }
    } back{spoken_, before};
    return f();
  }

  /// For messages: the device and the loops that are running.
  void enter_device(std::uint32_t device) { device_ = device; }
  void leave_device() { device_ = kNoDevice; }
  void enter_loop(std::uint32_t slot) { loops_.push_back(slot); }
  void leave_loop() { loops_.pop_back(); }
  void leave_loops() { loops_.clear(); }
  /// "on device 0, with m = 2"; empty outside of devices and loops.
  std::string situation() const;
  /// "P = 4, M = 8".
  std::string parameters() const;

  [[noreturn]] void fail(std::string_view kind, Span span, std::string message, std::string label = "",
                         Label other = {});
  /// One error for one place: what overlaps an error is not said again, for another device say.
  void report(Diagnostic diagnostic);

 private:
  static constexpr std::uint32_t kNoDevice = UINT32_MAX;
  enum class State : std::uint8_t { New, Open, Done };

  TermId operand(const Term& term, std::uint32_t i) const { return code_.operand(term, i); }
  Datum arithmetic(const Term& term, TermId id);
  Datum compare(const Term& term, TermId id);
  void bind(const Term& term, Span span);
  Datum let(const Term& term, TermId id);
  void finish_let(std::size_t i);
  Datum fold(const Term& term, TermId id);
  Datum written(const Term& term, TermId id);
  Datum builtin(const Term& term, TermId id);
  Datum spoken(const Term& term, TermId id);
  /// The place of the `i`-th element of a list that is written out, or of the whole list.
  Span element_span(TermId list, std::int64_t length, std::int64_t i) const;
  std::uint32_t size(const Datum& datum, SettingKind kind, Span span);
  /// Fills the sizes of a setting, unless there are more than `most`. Result: how many there are.
  std::int64_t read_sizes(SettingKind kind, TermId id, const Datum& list, std::int64_t most);
  void check_slice_rows();
  [[noreturn]] void wrong_kind(TermId id, const char* needed, const Datum& found);
  [[noreturn]] void out_of_steps(Span span);
  Datum* take(std::int64_t n, Span span);

  const Code& code_;
  Diagnostics* sink_;
  std::vector<Datum> slots_;
  Arena arena_;
  std::vector<Datum> lets_;
  std::vector<bool> let_done_;
  /// Lets are being evaluated for good: lists in them stay.
  bool keeping_ = false;
  std::array<std::uint32_t, 4> counts_ = {};
  std::array<State, 4> count_state_ = {};
  Sizes sizes_;
  bool slices_by_microbatch_ = false;
  bool slices_differ_ = false;
  State place_state_ = State::New;
  Placement placement_;
  std::vector<Datum> stages_by_device_;
  std::vector<std::uint32_t> first_stage_;
  std::uint64_t steps_ = 0;
  std::uint64_t budget_ = std::uint64_t(1) << 26;
  std::uint32_t device_ = kNoDevice;
  std::vector<std::uint32_t> loops_;
  Spoken* spoken_ = nullptr;
  std::vector<Span> reported_;
};

}  // namespace stave
