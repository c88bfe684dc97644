#include "cli/run/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/prediction.h"
#include "compiler/verify.h"
#include "executor/clock.h"
#include "executor/plan.h"
#include "executor/stage/frozen_time.h"
#include "scheduler/analysis.h"
#include "scheduler/overlap.h"
#include "scheduler/simulate.h"

namespace stave {

namespace {

/// Fewer steps have learnt nothing that a verdict could be about.
constexpr std::size_t kStepsForVerdict = 100;

std::string time(Ticks ns) {
  const double value = static_cast<double>(ns);
  if (value < 1e6) return fmt::format("{:.1f} us", value / 1e3);
  if (value < 1e9) return fmt::format("{:.2f} ms", value / 1e6);
  return fmt::format("{:.3f} s", value / 1e9);
}

std::string difference(Ticks measured, Ticks predicted) {
  if (measured == predicted) return "equal";
  if (predicted == 0) return "-";
  const double percent = 100 * (static_cast<double>(measured) / static_cast<double>(predicted) - 1);
  // No "-0.0 %".
  return fmt::format("{:+.1f} %", std::abs(percent) < 0.05 ? 0.0 : percent);
}

}  // namespace

RunText::RunText(const RunArguments& arguments, const Built& built, const TrainedModel& model, const RunOptions& options,
                 const Costs& costs_ns, std::string clock, bool is_quiet)
    : arguments_(arguments),
      built_(built),
      model_(model),
      options_(options),
      costs_ns_(costs_ns),
      clock_(std::move(clock)),
      is_quiet_(is_quiet) {}

std::string RunText::comparison_text() const {
  const Comparison& result = *model_.comparison();
  if (!arguments_.has_loss()) return fmt::format("\nresult equals the sequential run's: {}\n", result.agrees ? "yes" : "no");
  const bool exact = result.exact == result.tensors;
  return fmt::format("\ngradients of step 1 equal the sequential run's: {}: {} of {} tensors to the last bit{}\n",
                     result.agrees ? "yes" : "no", result.exact, result.tensors,
                     exact ? "" : fmt::format(", the others within {:.1e} of their largest element (at most {:.0e})",
                                              result.worst, result.must_be_exact ? 0.0 : result.tolerance));
}

void RunText::deadlock(const Deadlock& deadlock) {
  Diagnostics ignored;
  const bool legal = verify(*built_.schedule, *built_.table, ignored);
  const Program& program = *built_.program;
  if (arguments_.json) {
    const auto text = [&](NodeId node) {
      return program.is_message(node) ? "the " + describe(program, node) : describe(program, node);
    };
    Json blocked = Json::array();
    for (const Deadlock::Blocked& each : deadlock.blocked) {
      blocked.push_back({{"device", each.device.value},
                         {"at", text(each.node)},
                         {"needs", text(each.needs)},
                         {"waits_for_device", each.on.value}});
    }
    Json cycle = Json::array();
    for (DeviceId d : deadlock.cycle) cycle.push_back(d.value);
    const Json result = {{"schedule", built_.schedule->name},
                         {"workload", arguments_.workload},
                         {"steps", steps_},
                         {"deadlock", {{"blocked", blocked}, {"cycle", cycle}, {"table_is_legal", legal}}}};
    show(result.dump(2) + "\n");
  }
  print_error(fmt::format("error: the run stopped: devices wait for each other [deadlock]\n{}", describe(program, deadlock)));
  if (legal)
    print_error(
        "the table itself is legal: without --unchecked its messages are ordered so that it finishes\n");
}

void RunText::heading() {
  std::string result = title_of(*built_.schedule) + "\n";
  if (arguments_.trains()) {
    result += fmt::format("model     transformer, {} parameters in {} stage{}{}, {} tokens a step\n", model_.parameters(),
                          built_.schedule->stages, built_.schedule->stages == 1 ? "" : "s",
                          arguments_.model.tied ? ", embedding tied" : "", model_.workload().tokens_per_step());
    result += fmt::format("data      {}: {} bytes, entropy of the single bytes {:.3f} nats\n", model_.data(), model_.corpus()->size(),
                          model_.corpus()->byte_entropy());
  } else {
    result += arguments_.has_own_stage() ? fmt::format("stage     {}\n", printable(arguments_.stage))
                                         : fmt::format("workload  {}\n", arguments_.workload);
  }
  result += fmt::format("clock     {}\n", clock_);
  if (arguments_.unchecked) result +=
        "order     unchecked: the table's own, each send right after its op, each receive right before the op that\n"
        "          needs it, nothing buffered; a legal table may stop so\n";
  say(result + (arguments_.trains()          ? "\n  step  loss/nats   tokens/s   bubble\n"
                : arguments_.has_own_stage() ? "\n  step       loss   makespan   bubble\n"
                                             : "\n  step   makespan   bubble\n"));
}

void RunText::step(const StepReport& step) {
  if (arguments_.json) {
    Json entry = {{"step", step.step + 1}};
    if (arguments_.has_loss()) entry["loss"] = step.loss;
    if (arguments_.trains()) {
      entry["tokens_per_second"] = step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0;
    }
    entry["makespan"] = static_cast<double>(step.makespan_ns) / 1e3;
    entry["bubble"] = step.bubble ? Json(*step.bubble) : Json();
    steps_.push_back(std::move(entry));
    return;
  }
  const std::uint64_t every = arguments_.every > 0 ? arguments_.every : std::max(1u, arguments_.model.steps / 15);
  const std::uint64_t number = step.step + 1;
  if (number != 1 && number % every != 0 && number != arguments_.model.steps) return;
  const std::string bubble = step.bubble ? fmt::format("{:5.1f} %", 100 * *step.bubble) : "    -";
  if (arguments_.trains()) {
    say(fmt::format("{:6}  {:9.3f}   {:8.0f}   {}\n", number, step.loss,
                    step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0, bubble));
  } else if (arguments_.has_own_stage()) {
    say(fmt::format("{:6}  {:9.4g}   {:>8}   {}\n", number, step.loss, time(step.makespan_ns), bubble));
  } else {
    say(fmt::format("{:6}   {:8}   {}\n", number, time(step.makespan_ns), bubble));
  }
}

void RunText::close(const RunReport& report) {
  const std::vector<double>& losses = report.losses;
  double last_five = 0;
  const std::size_t last = std::min<std::size_t>(5, losses.size());
  for (std::size_t i = losses.size() - last; i < losses.size(); ++i) last_five += losses[i] / static_cast<double>(last);
  if (arguments_.json) {
    close_json(report, last_five);
    return;
  }
  if (arguments_.trains() && last > 0) {
    const double entropy = model_.corpus()->byte_entropy();
    say(fmt::format("\nmean loss of the last {} step{} {:.3f} nats", last, last == 1 ? "" : "s", last_five));
    // Fewer steps have learnt nothing that a verdict could be about.
    if (losses.size() >= kStepsForVerdict)
      say(fmt::format(", {} the {:.3f} of a model that ignores its context", last_five < entropy ? "below" : "not below",
                      entropy));
    say("\n");
  }
  if (report.interrupted && !arguments_.checkpoint.empty())
    say(fmt::format("interrupted after step {}; its checkpoint is in {}\n", report.resumed_at + losses.size(),
                    printable(arguments_.checkpoint)));
  if (model_.comparison()) say(comparison_text());
  if (!report.declared.empty() && !arguments_.sleeps())
    say(fmt::format(
        "ops of {} were run as a wait of their cost, at {} ms a unit: only the schedule knows what they are\n",
        fmt::join(report.declared, ", "), arguments_.unit_ms));
  if (losses.empty() || built_.program->order.empty()) return;
  say(unit_text(report));
  compare(report);
  say(frozen_text(report));
}

/// What freezing took off the W of each stage; empty if nothing is frozen.
std::string RunText::frozen_text(const RunReport& report) const {
  if (model_.transformer() == nullptr) return "";
  std::string result;
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  for (const FrozenTime& each : frozen_times(model_.program(), report.shortest_ns, *model_.transformer()))
    result += fmt::format("stage {:<5} {:>11} {:>11} {:>11} {:>11} {:>11}\n", each.stage.value,
                          fmt::format("{} of {}", each.frozen, each.ops), percent(each.asked), percent(each.groups),
                          percent(each.work), each.measured ? percent(*each.measured) : "-");
  if (result.empty()) return "";
  return fmt::format("\nfrozen      {:>11} {:>11} {:>11} {:>11} {:>11}\n", "microbatch", "asked for", "by groups",
                     "of W's work", "of its time") + result;
}

/// What a unit would have to be for waits and messages to be as long beside the computing as the schedule has them;
/// empty if they take nothing, or nearly are.
std::string RunText::unit_text(const RunReport& report) const {
  if (!arguments_.trains()) return "";
  const Table& table = built_.program->table;
  Ticks priced = 0;
  Ticks computed = 0;
  Ticks waits = 0;
  for (std::uint32_t node = 0; node < built_.program->nodes(); ++node) {
    const OpKind* kind = node < table.size() ? &table.ops.kind(table.entries[node]) : nullptr;
    // Messages of GPUs take what they take.
    if (kind == nullptr && arguments_.is_on_gpus()) continue;
    const bool is_wait = kind == nullptr || kind->operation == Operation::Declared;
    if (is_wait) waits += options_.cost_ns[node];
    if (is_wait || kind->optional) continue;
    priced += options_.cost_ns[node];
    computed += report.timeline.end[node] - report.timeline.start[node];
  }
  for (Ticks setup : options_.setup_ns) waits += setup;
  if (waits == 0 || priced == 0 || computed == 0) return "";
  const double ratio = static_cast<double>(computed) / static_cast<double>(priced);
  if (ratio >= 0.5 && ratio <= 2) return "";
  return fmt::format(
      "The computing took {:.2g} of what its costs are at {} ms a unit: with --unit-ms {:.2g} waits{}\n"
      "would be as long beside it as the schedule has them.\n",
      ratio, arguments_.unit_ms, ratio * arguments_.unit_ms, arguments_.is_on_gpus() ? "" : " and messages");
}

void RunText::compare(const RunReport& report) {
  const Program& program = *built_.program;
  const bool from_costs = arguments_.sleeps();
  const Timeline predicted = predict(report);
  const IdVector<DeviceId, DeviceReport> was = analyse(*built_.schedule, program, report.timeline).devices;
  const IdVector<DeviceId, DeviceReport> is = analyse(*built_.schedule, program, predicted).devices;
  say(fmt::format("\nstep {} measured, against the simulator's prediction from {}\n\n", report.timeline_step + 1,
                  from_costs                ? "the costs"
                  : arguments_.is_on_gpus() ? "the mean time of each stage's ops and each link's messages"
                                            : "the mean time of each stage's ops"));
  say(fmt::format("            {:^34}  {:^34}\n", "busy", "end of the last op"));
  say(fmt::format("            {:>11} {:>11} {:>10}  {:>11} {:>11} {:>10}\n", "measured", "predicted", "difference",
                  "measured", "predicted", "difference"));
  Ticks measured_end = 0;
  Ticks predicted_end = 0;
  for (std::uint32_t i = 0; i < was.size(); ++i) {
    const DeviceId d(i);
    say(fmt::format("device {:<4} {:>11} {:>11} {:>10}  {:>11} {:>11} {:>10}\n", i, time(was[d].busy), time(is[d].busy),
                    difference(was[d].busy, is[d].busy), time(was[d].last), time(is[d].last),
                    difference(was[d].last, is[d].last)));
    measured_end = std::max(measured_end, was[d].last);
    predicted_end = std::max(predicted_end, is[d].last);
  }
  say(fmt::format("makespan    {:>34}  {:>11} {:>11} {:>10}\n", "", time(measured_end), time(predicted_end),
                  difference(measured_end, predicted_end)));
  const MessageTime really = message_time(program, report.timeline);
  const MessageTime expected = message_time(program, predicted);
  if (really.under_way > 0)
    say(fmt::format("messages    {:.1f} % of {} behind computing, predicted {}\n", 100 * really.hidden(),
                    time(really.under_way),
                    expected.under_way > 0 ? fmt::format("{:.1f} % of {}", 100 * expected.hidden(), time(expected.under_way))
                                           : "to take no time"));
  const double ratio = predicted_end > 0 ? static_cast<double>(measured_end) / static_cast<double>(predicted_end) : 1;
  if (options_.clock == Clock::Wall && std::abs(ratio - 1) > 0.1 && !arguments_.is_on_gpus())
    say(from_costs ? "More than 10 % apart: the machine was busy, or the sleeps are too short for its timer; try a larger "
                     "--unit-ms.\n"
                   : "More than 10 % apart: on the wall clock threads share cores and wait to be woken; --clock virtual "
                     "leaves that out.\n");
  if (from_costs) return;
  if (options_.clock == Clock::Virtual)
    say("The ops of a stage take unlike times, by their sizes or by chance; more steps or a larger model leave less to "
        "chance.\n");
  const Timeline by_own = simulate(program, own_lengths(program, report.timeline, with_messages(report)));
  const Ticks own = analyse(*built_.schedule, program, by_own).makespan;
  say(fmt::format("With each op's own time in place of the means the prediction is {}: {}.\n", time(own),
                  difference(measured_end, own)));
}

void RunText::close_json(const RunReport& report, double last_five) {
  Json result = {{"schedule", built_.schedule->name},
                 {"workload", arguments_.has_own_stage() ? "stage" : arguments_.workload},
                 {"clock", options_.clock == Clock::Virtual ? "virtual" : "wall"},
                 {"unit", "us"},
                 {"steps", steps_}};
  if (arguments_.trains()) {
    result["byte_entropy"] = model_.corpus()->byte_entropy();
    result["loss"] = last_five;
    result["loss_unit"] = "nats";
  }
  if (model_.comparison()) {
    result["equals_sequential_run"] = model_.comparison()->agrees;
    result["tensors"] = model_.comparison()->tensors;
    result["tensors_exact"] = model_.comparison()->exact;
    result["greatest_difference"] = std::isfinite(model_.comparison()->worst) ? Json(model_.comparison()->worst) : Json();
  }
  if (!report.losses.empty() && !built_.program->order.empty()) {
    result["measured"] = timeline_json(report.timeline);
    result["measured"]["step"] = report.timeline_step + 1;
    result["predicted"] = timeline_json(predict(report));
    if (!arguments_.sleeps())
      result["predicted_from_own_times"] =
          timeline_json(simulate(*built_.program, own_lengths(*built_.program, report.timeline, with_messages(report))));
  }
  if (const Transformer* transformer = model_.transformer(); transformer != nullptr && !report.losses.empty()) {
    Json frozen = Json::array();
    for (const FrozenTime& each : frozen_times(model_.program(), report.shortest_ns, *transformer))
      frozen.push_back({{"stage", each.stage.value},
                        {"ops", each.ops},
                        {"frozen", each.frozen},
                        {"asked", each.asked},
                        {"groups", each.groups},
                        {"work", each.work},
                        {"time", each.measured ? Json(*each.measured) : Json()}});
    if (!frozen.empty()) result["frozen"] = frozen;
  }
  result["interrupted"] = report.interrupted;
  show(result.dump(2) + "\n");
}

RunText::Json RunText::timeline_json(const Timeline& timeline) const {
  const auto us = [](Ticks ns) { return static_cast<double>(ns) / 1e3; };
  Json devices = Json::array();
  const Report report = analyse(*built_.schedule, *built_.program, timeline);
  for (std::uint32_t d = 0; d < report.devices.size(); ++d) {
    const DeviceReport& each = report.devices[DeviceId(d)];
    devices.push_back({{"device", d}, {"busy", us(each.busy)}, {"first", us(each.first)}, {"last", us(each.last)}});
  }
  const MessageTime messages = message_time(*built_.program, timeline);
  return {{"makespan", us(report.makespan)},
          {"devices", devices},
          {"message_time", us(messages.under_way)},
          {"message_time_hidden", messages.hidden()}};
}

Costs RunText::with_messages(const RunReport& report) const {
  return arguments_.is_on_gpus() ? measured_messages(*built_.program, report.messages, costs_ns_) : costs_ns_;
}

Timeline RunText::predict(const RunReport& report) const {
  if (arguments_.sleeps()) return simulate(*built_.program, costs_ns_);
  return simulate(*built_.program, typical_lengths(*built_.program, report.lengths, with_messages(report)));
}

void RunText::say(const std::string& text) {
  if (!arguments_.json) show(text);
}

void RunText::show(const std::string& text) {
  if (is_quiet_) return;
  if (const Result<void> printed = print(text); !printed && print_failure_.empty())
    print_failure_ = printed.failure().message;
}

}  // namespace stave
