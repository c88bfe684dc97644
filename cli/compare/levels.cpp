#include "cli/compare/levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/compare/columns.h"
#include "cli/report.h"
#include "compiler/expect.h"
#include "scheduler/pricer/straight_line.h"

namespace stave {
namespace {

Rational units(Ticks ticks, Ticks per_unit) {
  // Not above kMaxTicks, so it fits.
  return *Rational::make(ticks, per_unit);
}

std::string title(const Schedule& schedule) {
  std::string result = schedule.name;
  for (const NamedText& each : parameters_of(schedule))
    if (!each.value.starts_with('[')) result += fmt::format(" {}={}", each.name, each.value);
  return result;
}

/// The same table with messages that take no time.
Rational ideal_of(const Built& built) {
  Costs free = *built.costs;
  free.message.assign(free.message.size(), 0);
  const Price price = StraightLine(*built.schedule, *built.table, free).price(free);
  return units(price.makespan, free.ticks_per_unit);
}

/// Of all pairs of a stage and a microbatch, how many have a forward; 1 if none has.
double visited_of(const Schedule& schedule, const Table& table) {
  const OpSet& ops = table.ops;
  std::vector<bool> seen(std::size_t{schedule.stages} * schedule.microbatches, false);
  std::size_t count = 0;
  for (const OpId op : table.entries) {
    if (ops.kind(op).operation != Operation::Forward) continue;
    const std::size_t pair = std::size_t{ops.stage(op)} * schedule.microbatches + ops.microbatch(op);
    if (pair >= seen.size() || seen[pair]) continue;
    seen[pair] = true;
    ++count;
  }
  return count == 0 ? 1 : static_cast<double>(count) / static_cast<double>(seen.size());
}

Levels levels_of(const Built& built, Share share) {
  const Schedule& schedule = *built.schedule;
  const Report& report = *built.report;
  Levels result;
  result.title = title(schedule);
  result.unit = built.timeline->unit;
  result.devices = schedule.devices;
  result.microbatches = schedule.microbatches;
  result.share = share;
  const ReportMetrics metrics(report, MadeFrom{schedule, *built.table, *built.costs});
  result.formula = claimed_makespan(schedule, schedule.costs, metrics);
  CostSet free = schedule.costs;
  free.message.assign(free.message.size(), Rational(0));
  result.formula_free = claimed_makespan(schedule, free, metrics);
  result.ideal = ideal_of(built);
  result.priced = units(report.makespan, report.ticks_per_unit);
  result.span = units(report.span, report.ticks_per_unit);
  result.bubble = bubble_of(report);
  result.span_bubble = span_bubble_of(report);
  result.utilisation = report.utilisation;
  std::uint32_t peak = 0;
  for (const DeviceReport& device : report.devices) peak = std::max(peak, device.peak_activations);
  result.peak_activations = multiply(Rational(peak), share.activations).value_or(Rational(peak));
  if (report.peak_memory) {
    Rational most = 0;
    for (const PeakMemory& each : *report.peak_memory) most = std::max(most, each.size);
    result.peak_memory = multiply(most, share.size);
  }
  result.messages = report.messages;
  for (const std::uint32_t each : report.staleness) result.staleness = std::max(result.staleness, each);
  const std::vector<Rational>& freeze = schedule.costs.freeze;
  result.freezes = std::any_of(freeze.begin(), freeze.end(), [](const Rational& ratio) { return ratio != Rational(0); });
  result.visited = visited_of(schedule, *built.table);
  result.account = account_of(*built.program, *built.timeline, *built.costs, report, built.turns);
  return result;
}

/// The first thing that is wrong, in a line.
std::string first_error(const Diagnostics& sink) {
  for (const Diagnostic& each : sink.all())
    if (each.severity == Severity::Error)
      return each.kind == "require" ? each.message : fmt::format("{} [{}]", each.message, each.kind);
  return "it is wrong";
}

}  // namespace

std::string memory_text(const Levels& levels, const std::optional<Rational>& size) {
  return size && levels.bytes ? bytes_text(size->to_double()) : number_text(size);
}

Result<Priced> price(const Competitor& competitor, const std::optional<Standard>& standard, bool silent) {
  Priced result;
  Built built;
  Result<Outcome> outcome = Outcome::Rejected;
  Share share;
  std::optional<Work> work;
  if (competitor.loaded.ok()) {
    outcome = expand_into(built, competitor.loaded, competitor.arguments);
    if (outcome && outcome.value() == Outcome::Done) {
      work = work_of(*built.schedule);
      share =
          share_of(work, standard ? std::optional(standard->work) : std::nullopt, competitor.loaded.prices != nullptr);
      if (share.time != Rational(1) && !scale(built.schedule->costs, share.time)) share = Share();
      outcome = build_expanded(built, competitor.loaded, Step::Priced);
    }
  }
  if (!outcome) return outcome.failure();
  if (!silent) {
    print_diagnostics(competitor.loaded.sources, competitor.loaded.sink);
    print_diagnostics(competitor.loaded.sources, built.sink);
    print_diagnostics(competitor.loaded.sources, as_warnings(built.expects));
  }
  result.outcome = outcome.value();
  if (result.outcome != Outcome::Done) {
    result.reason = !competitor.reason.empty()
                        ? competitor.reason
                        : first_error(competitor.loaded.ok() ? built.sink : competitor.loaded.sink);
    return result;
  }
  result.levels = levels_of(built, share);
  result.levels->work = work;
  result.levels->priced_by_file = competitor.loaded.prices != nullptr;
  result.levels->bytes = competitor.loaded.machine != nullptr;
  if (competitor.loaded.is_csv) result.levels->title = competitor.label;
  return result;
}

}  // namespace stave
