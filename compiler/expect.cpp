#include "compiler/expect.h"

#include <fmt/format.h>

#include "compiler/evaluate.h"
#include "compiler/expansion.h"
#include "compiler/price_lines.h"
#include "compiler/order_from_lists.h"
#include "core/check.h"

namespace stave {

namespace {

/// Thrown when a line cannot be tried.
struct Skip {
  std::string why;
};

class Asked : public Letters {
 public:
  Asked(Evaluator& evaluator, const Schedule& schedule, const CostSet& costs, const Metrics& metrics)
      : Letters(evaluator, schedule.expansion->world, costs), schedule_(schedule), metrics_(metrics) {}

  Rational metric(TermId id) override {
    const Code& code = evaluator_.code();
    const Term& term = code[id];
    MetricQuery query;
    query.metric = static_cast<Metric>(term.target);
    const MetricInfo& about = info(query.metric);
    for (std::uint32_t i = 0; i < term.count; ++i) {
      const TermId operand = code.operand(term, i);
      switch (about.arguments[i]) {
        case MetricArgument::None: break;
        case MetricArgument::Device:
        case MetricArgument::Stage: {
          const bool device = about.arguments[i] == MetricArgument::Device;
          (i == 0 ? query.first : query.second) = evaluator_.index(
              operand, device ? "device" : "stage", device ? schedule_.devices : schedule_.stages);
          break;
        }
        case MetricArgument::Op: query.kind = KindId(code[operand].target); break;
        case MetricArgument::Cause: query.cause = static_cast<IdleCause>(code[operand].target); break;
      }
    }
    // What the file claims counts in the sizes of its own `memory` lines.
    if (query.metric == Metric::PeakMemory && !schedule_.costs.state.empty())
      throw Skip{"the sizes in force are those of a model"};
    const std::optional<Rational> value = metrics_.value(query);
    if (value) return *value;
    const std::string cause = query.cause ? fmt::format(" by {}", info(*query.cause).name) : "";
    throw Skip{fmt::format("`{}`{} is not available in this version", about.name, cause)};
  }

 protected:
  void not_one_number(const std::string& name, Span) override {
    throw Skip{fmt::format("the cost of `{}` is not one number", name)};
  }
  void no_cost(const std::string& name, Span) override { throw Skip{fmt::format("`{}` has no cost", name)}; }

 private:
  const Schedule& schedule_;
  const Metrics& metrics_;
};

bool compares(TermKind kind) { return kind >= TermKind::Equal && kind <= TermKind::GreaterEqual; }

class Lines {
 public:
  Lines(const Schedule& schedule, const CostSet& costs, const Metrics& metrics, Diagnostics& sink)
      : code_(*schedule.expansion->code), evaluator_(code_, sink), asked_(evaluator_, schedule, costs, metrics) {
    set_parameters(evaluator_, schedule.expansion->arguments);
    evaluator_.speak(&asked_);
  }

  ExpectResult line(const ExpectCode& expect) {
    ExpectResult result;
    result.span = expect.span;
    try {
      evaluator_.leave_loops();
      if (!expect.list.valid()) {
        result.outcome = once(expect, result);
        return result;
      }
      const Datum list = evaluator_.list(expect.list);
      evaluator_.enter_loop(expect.slot);
      result.outcome = ExpectOutcome::DoesNotApply;
      for (std::int64_t i = 0; i < list.length(); ++i) {
        evaluator_.step(code_.spans[expect.list]);
        evaluator_.set(expect.slot, list[i]);
        const ExpectOutcome outcome = once(expect, result);
        if (outcome == ExpectOutcome::DoesNotApply) continue;
        result.outcome = outcome;
        if (outcome == ExpectOutcome::Fails) break;
      }
      evaluator_.leave_loop();
    } catch (const Skip& skip) {
      result.outcome = ExpectOutcome::Skipped;
      result.note = skip.why;
    } catch (const Stop&) {
      result.outcome = ExpectOutcome::Error;
    }
    return result;
  }

  /// What the line says the makespan is; none if it does not speak of it, does not apply or has no value.
  std::optional<Rational> claimed_makespan(const ExpectCode& expect) {
    const TermId claimed = expect.list.valid() ? TermId() : other_side_of_makespan(expect.claim);
    if (!claimed.valid()) return std::nullopt;
    try {
      evaluator_.leave_loops();
      if (expect.condition.valid() && !evaluator_.truth(expect.condition)) return std::nullopt;
      return evaluator_.number(claimed);
    } catch (const Skip&) {
    } catch (const Stop&) {
    }
    return std::nullopt;
  }

 private:
  TermId other_side_of_makespan(TermId claim) const {
    const Term& term = code_[claim];
    if (term.kind == TermKind::And) {
      const TermId first = other_side_of_makespan(code_.operand(term, 0));
      return first.valid() ? first : other_side_of_makespan(code_.operand(term, 1));
    }
    if (term.kind != TermKind::Equal) return TermId();
    const Term& left = code_[code_.operand(term, 0)];
    const bool makespan = left.kind == TermKind::Metric && static_cast<Metric>(left.target) == Metric::Makespan;
    return makespan ? code_.operand(term, 1) : TermId();
  }

  ExpectOutcome once(const ExpectCode& expect, ExpectResult& result) {
    const Arena::Mark mark = evaluator_.arena().mark();
    ExpectOutcome outcome = ExpectOutcome::Holds;
    if (expect.condition.valid() && !evaluator_.truth(expect.condition)) {
      outcome = ExpectOutcome::DoesNotApply;
    } else if (!evaluator_.truth(expect.claim)) {
      outcome = ExpectOutcome::Fails;
      result.failure = failure(expect);
    }
    evaluator_.arena().release(mark);
    return outcome;
  }

  Diagnostic failure(const ExpectCode& expect) {
    Diagnostic diagnostic;
    diagnostic.kind = "false-expect";
    diagnostic.message = "this expectation does not hold";
    // Of several claims joined by `and`, the first that is false.
    TermId claim = expect.claim;
    while (code_[claim].kind == TermKind::And) {
      const TermId left = code_.operand(code_[claim], 0);
      claim = evaluator_.truth(left) ? code_.operand(code_[claim], 1) : left;
    }
    diagnostic.primary = {code_.spans[claim], ""};
    const Term& term = code_[claim];
    if (compares(term.kind)) {
      const TermId left = code_.operand(term, 0);
      const TermId right = code_.operand(term, 1);
      const std::string left_text = evaluator_.value(left).text();
      const std::string right_text = evaluator_.value(right).text();
      diagnostic.message = fmt::format("this expectation does not hold: the left side is {}, the right side {}",
                                       left_text, right_text);
      diagnostic.primary = {code_.spans[left], left_text};
      diagnostic.labels.push_back({code_.spans[right], right_text});
    }
    if (expect.slot != kNoSlot)
      diagnostic.notes.push_back(fmt::format("with {} = {}", expect.variable, evaluator_.get(expect.slot).text()));
    const std::string parameters = evaluator_.parameters();
    if (!parameters.empty()) diagnostic.notes.push_back("where " + parameters);
    return diagnostic;
  }

  const Code& code_;
  Evaluator evaluator_;
  Asked asked_;
};

}  // namespace

std::vector<ExpectResult> try_expects(const Schedule& schedule, const Metrics& metrics, Diagnostics& sink) {
  std::vector<ExpectResult> results;
  if (schedule.expansion == nullptr || schedule.expansion->code->expects.empty()) return results;
  const Code& code = *schedule.expansion->code;
  Lines lines(schedule, schedule.costs, metrics, sink);
  for (const ExpectCode& expect : code.expects) results.push_back(lines.line(expect));
  return results;
}

std::optional<Rational> claimed_makespan(const Schedule& schedule, const CostSet& costs, const Metrics& metrics) {
  if (schedule.expansion == nullptr) return std::nullopt;
  Diagnostics unused;
  Lines lines(schedule, costs, metrics, unused);
  for (const ExpectCode& expect : schedule.expansion->code->expects)
    if (const std::optional<Rational> claimed = lines.claimed_makespan(expect)) return claimed;
  return std::nullopt;
}

}  // namespace stave
