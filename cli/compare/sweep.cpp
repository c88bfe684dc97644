#include "cli/compare/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/compare/standard.h"
#include "compiler/reprice.h"
#include "scheduler/compare/work.h"
#include "scheduler/pricer/straight_line.h"

namespace stave {
namespace {

/// Sets of costs that are priced at once.
constexpr std::size_t kBatch = 16;

/// The points of a sweep in blocks: in one all axes have one value but those that change nothing but costs.
class Grid {
 public:
  Grid(const std::vector<Competitor>& competitors, const std::vector<Axis>& axes) : axes_(axes) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const bool costs = std::none_of(competitors.begin(), competitors.end(),
                                      [&](const Competitor& each) { return each.roles[a] == AxisRole::Parameter; });
      (costs ? inner_ : outer_).push_back(a);
    }
  }

  std::uint64_t blocks() const { return cases(outer_); }
  std::uint64_t in_block() const { return cases(inner_); }

  std::vector<std::size_t> at(std::uint64_t block, std::uint64_t point) const {
    std::vector<std::size_t> result(axes_.size());
    take(outer_, block, result);
    take(inner_, point, result);
    return result;
  }

  /// As `coordinates` numbers them.
  std::size_t number(const std::vector<std::size_t>& at) const {
    std::size_t result = 0;
    for (std::size_t a = 0; a < axes_.size(); ++a) result = result * axes_[a].values.size() + at[a];
    return result;
  }

 private:
  std::uint64_t cases(const std::vector<std::size_t>& which) const {
    std::uint64_t result = 1;
    for (const std::size_t a : which) result *= axes_[a].values.size();
    return result;
  }
  void take(const std::vector<std::size_t>& which, std::uint64_t number, std::vector<std::size_t>& into) const {
    for (std::size_t i = which.size(); i-- > 0; number /= axes_[which[i]].values.size())
      into[which[i]] = number % axes_[which[i]].values.size();
  }

  const std::vector<Axis>& axes_;
  std::vector<std::size_t> outer_;
  std::vector<std::size_t> inner_;
};

class Pricer {
 public:
  Pricer(const std::vector<Competitor>& competitors, const std::vector<Axis>& axes, const SweepOptions& options)
      : competitors_(competitors), axes_(axes), options_(options), grid_(competitors, axes) {}

  Result<Sweep> all() {
    sweep_.priced.assign(cases_of(axes_), Values(competitors_.size()));
    for (std::uint64_t block = 0; block < grid_.blocks(); ++block) {
      find_standards(block);
      for (std::size_t c = 0; c < competitors_.size(); ++c)
        if (const Result<void> priced = price(block, c); !priced) return priced.failure();
    }
    progress_.clear();
    return std::move(sweep_);
  }

 private:
  /// The work that is compared, by point of the block.
  void find_standards(std::uint64_t block) {
    standards_.assign(grid_.in_block(), std::nullopt);
    if (options_.as_written && !options_.same_work) return;
    standard_ = find_standard(competitors_, axes_, grid_.at(block, 0));
    if (!standard_ || options_.as_written) return;
    const Competitor& competitor = competitors_[standard_->competitor];
    Built built;
    const Result<Outcome> outcome =
        expand_into(built, competitor.loaded, competitor.arguments_at(axes_, grid_.at(block, 0)));
    if (!outcome || outcome.value() != Outcome::Done) return;
    for (std::uint64_t point = 0; point < grid_.in_block(); ++point) {
      if (point > 0) {
        std::optional<CostSet> costs =
            price_again(*competitor.loaded.compiled, competitor.arguments_at(axes_, grid_.at(block, point)),
                        *built.schedule, competitor.loaded.prices.get(), built.sink);
        if (!costs) continue;
        built.schedule->costs = std::move(*costs);
      }
      standards_[point] = work_of(*built.schedule);
    }
  }

  bool is_other_work(const Competitor& competitor, const Schedule& schedule) const {
    const Size size{schedule.devices, schedule.microbatches, work_of(schedule)};
    return standard_ && !other_work(size, *standard_, competitor.loaded.prices != nullptr).empty();
  }

  void adopt_standard(Schedule& schedule, std::uint64_t point) const {
    const Share share = share_of(work_of(schedule), standards_[point], false);
    if (share.time != Rational(1)) scale(schedule.costs, share.time);
  }

  /// Prices of one competitor in one block.
  Result<void> price(std::uint64_t block, std::size_t c) {
    const Competitor& competitor = competitors_[c];
    const std::uint64_t all = cases_of(axes_) * competitors_.size();
    std::optional<Built> base;
    std::optional<StraightLine> line;
    std::vector<Costs> batch;
    std::vector<std::uint64_t> points;
    const auto flush = [&] {
      const std::vector<Price> prices = line ? line->price(batch) : std::vector<Price>();
      for (std::size_t i = 0; i < batch.size(); ++i) keep(block, points[i], c, prices[i], batch[i]);
      batch.clear();
      points.clear();
    };
    for (std::uint64_t point = 0; point < grid_.in_block(); ++point) {
      progress_.show(done_++, all);
      const std::vector<Argument> arguments = competitor.arguments_at(axes_, grid_.at(block, point));
      Built built;
      if (!base) {
        const Result<Outcome> expanded = expand_into(built, competitor.loaded, arguments);
        if (!expanded) return expanded.failure();
        if (expanded.value() == Outcome::Refused) {
          // Only parameters of the text are required anything of, and they stay the same.
          sweep_.refused += grid_.in_block();
          done_ += grid_.in_block() - 1 - point;
          return {};
        }
        if (expanded.value() == Outcome::Done && options_.same_work && is_other_work(competitor, *built.schedule)) {
          done_ += grid_.in_block() - 1 - point;
          return {};
        }
        if (expanded.value() != Outcome::Done) {
          wrong(c, arguments, competitor.loaded.ok() ? built.sink : competitor.loaded.sink);
          continue;
        }
      } else {
        std::optional<CostSet> costs = price_again(*competitor.loaded.compiled, arguments, *base->schedule,
                                                   competitor.loaded.prices.get(), built.sink);
        if (!costs) {
          if (const Result<Outcome> why = rejected(competitor.loaded, built.sink); !why) return why.failure();
          wrong(c, arguments, built.sink);
          continue;
        }
        base->schedule->costs = std::move(*costs);
      }
      Schedule& schedule = base ? *base->schedule : *built.schedule;
      if (competitor.loaded.prices == nullptr) adopt_standard(schedule, point);
      if (!line || !schedule.is_static() || base->contends) {
        if (base) built.schedule = std::move(base->schedule);
        const Result<Outcome> outcome =
            build_expanded(built, competitor.loaded, needs_program(competitor.loaded) ? Step::Priced : Step::Checked);
        if (!outcome) return outcome.failure();
        if (outcome.value() != Outcome::Done) wrong(c, arguments, built.sink);
        const bool good = outcome.value() == Outcome::Done;
        base = std::move(built);
        if (!good) continue;
        sweep_.unit = base->costs->unit;
        if (base->contends) {
          keep(block, point, c, {base->report->makespan, base->report->span}, *base->costs);
          line.emplace(*base->schedule, *base->table, *base->costs);
          continue;
        }
        line.emplace(*base->schedule, *base->table, *base->costs);
        batch.push_back(*base->costs);
        points.push_back(point);
      } else {
        if (competitor.loaded.launch)
          if (const Result<void> added = add_launch(schedule, *competitor.loaded.launch); !added) return added.failure();
        std::optional<Costs> costs = make_costs(schedule, built.sink);
        if (!costs) {
          if (const Result<Outcome> why = rejected(competitor.loaded, built.sink); !why) return why.failure();
          wrong(c, arguments, built.sink);
          continue;
        }
        batch.push_back(std::move(*costs));
        points.push_back(point);
      }
      if (batch.size() == kBatch || !base->schedule->is_static()) flush();
    }
    flush();
    return {};
  }

  /// On a machine there are paths and memory to look at; and what messages contend for only a program says.
  static bool needs_program(const Loaded& loaded) { return loaded.machine != nullptr || loaded.rules.changes_order(); }

  void keep(std::uint64_t block, std::uint64_t point, std::size_t c, const Price& price, const Costs& costs) {
    sweep_.priced[grid_.number(grid_.at(block, point))][c] = Rational::make(price.makespan, costs.ticks_per_unit);
  }

  void wrong(std::size_t c, const std::vector<Argument>& arguments, const Diagnostics& sink) {
    if (sweep_.wrong++ > 0) return;
    sweep_.first_wrong = c;
    sweep_.first_wrong_arguments = arguments;
    sweep_.first_wrong_sink = sink;
  }

  const std::vector<Competitor>& competitors_;
  const std::vector<Axis>& axes_;
  const SweepOptions options_;
  const Grid grid_;
  Sweep sweep_;
  std::optional<Standard> standard_;
  std::vector<std::optional<Work>> standards_;
  Progress progress_{"pricing"};
  std::uint64_t done_ = 0;
};

}  // namespace

Result<Sweep> price_sweep(const std::vector<Competitor>& competitors, const std::vector<Axis>& axes,
                          const SweepOptions& options) {
  const std::uint64_t points = cases_of(axes);
  if (points * competitors.size() > kMaxCases)
    return Failure{fmt::format("{} points of {} schedules are {} prices; at most {} are made", points,
                               competitors.size(), points * competitors.size(), kMaxCases)};
  return Pricer(competitors, axes, options).all();
}

}  // namespace stave
