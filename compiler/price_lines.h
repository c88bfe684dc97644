// The costs of a schedule, from its `cost`, `memory` and `freeze` lines.
#pragma once

#include <optional>
#include <vector>

#include "compiler/evaluate.h"
#include "compiler/prices.h"
#include "compiler/schedule.h"
#include "compiler/world.h"

namespace stave {

/// A later line replaces an earlier one; a letter in a line stands for the cost of the lines above it. A fused op costs
/// the sum of its parts, and takes and gives back what they do, unless a line says otherwise.
/// Cost: an evaluation for each value of the indices that a line uses, so for every two devices. Errors: a diagnostic, and Stop.
///
/// `prices`, if there are any, come after the file's own lines and before those of a command line; `schedule` is for
/// them.
CostSet price_lines(Evaluator& evaluator, const World& world, const Schedule& schedule, const Prices* prices);

/// The last line in force for a pair of two kinds, in either order; null if there is none.
const ValueCode* pair_line(const Code& code, const CostSet& costs, std::uint32_t op, std::uint32_t other);
/// The price of a pair of two kinds that is no line's; none if there is none.
std::optional<Rational> pair_price(const CostSet& costs, std::uint32_t op, std::uint32_t other);

/// Costs that `expect` and cost lines ask for by the letter of an op: the one number that it has.
class Letters : public Spoken {
 public:
  Letters(Evaluator& evaluator, const World& world, const CostSet& costs)
      : evaluator_(evaluator), world_(world), costs_(costs) {}

  Rational letter(std::uint32_t op, Span span) override;
  Rational cost(std::uint32_t op, const std::array<std::uint32_t, kMaxIndices>& index, Span span) override;
  /// A line for the pair may use any cost of the file: it is tried after all others.
  Rational pair(std::uint32_t op, std::uint32_t other, Span span) override;
  Rational message(std::uint32_t payload, Span span) override;
  Rational message(std::uint32_t payload, std::uint32_t source, std::uint32_t target, Span span) override;
  Rational metric(TermId term) override;

  /// Until it speaks of all sizes again, the cost of a message is that of this size. Where sizes matter and none is
  /// spoken of it is not one number.
  void speak_of_size(std::uint32_t size) {
    size_ = size;
    asked_for_size_ = false;
  }
  void speak_of_all_sizes() { size_ = std::nullopt; }
  /// Whether a cost that depends on the size was asked for since it was set.
  bool was_asked_for_size() const { return asked_for_size_; }

 protected:
  /// Said of a letter, or of `message`, whose cost is not one number. Throws.
  [[noreturn]] virtual void not_one_number(const std::string& name, Span span);
  /// Said of an op that has no cost. Throws.
  [[noreturn]] virtual void no_cost(const std::string& name, Span span);

  Evaluator& evaluator_;
  const World& world_;
  const CostSet& costs_;

 private:
  std::optional<std::uint32_t> size_;
  bool asked_for_size_ = false;

  Rational sum_of_parts(std::uint32_t op, const std::array<std::uint32_t, kMaxIndices>& index, Span span, bool one);
};

}  // namespace stave
