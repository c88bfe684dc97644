// stave check: everything that can be proven of schedules before anything runs.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/best_map.h"
#include "cli/command.h"
#include "cli/over.h"
#include "cli/pipeline.h"
#include "compiler/render.h"
#include "compiler/utf8.h"

namespace stave {
namespace {

using Json = nlohmann::ordered_json;

struct CheckArguments {
  ScheduleOptions schedules;
  std::vector<std::string> over;
  bool json = false;
};

std::string count(std::uint64_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

class Checks {
 public:
  explicit Checks(const CheckArguments& arguments) : arguments_(arguments) {}

  Exit run() {
    const Result<std::vector<ScheduleArgument>> schedules = schedule_arguments(arguments_.schedules, true);
    if (!schedules) return fail(schedules.failure().message);
    const Result<std::vector<Axis>> axes = read_axes(arguments_.over);
    if (!axes) return fail(axes.failure().message);
    if (arguments_.schedules.map == kBestMap) return fail(no_best_map("check").message);
    for (const ScheduleArgument& schedule : schedules.value())
      if (const Result<void> checked = check(schedule, axes.value()); !checked) return fail(checked.failure().message);
    if (arguments_.json) text_ = Json{{"ok", good_}, {"schedules", entries_}}.dump(2) + "\n";
    if (const Result<void> printed = print(text_); !printed) return fail(printed.failure().message);
    return good_ ? Exit::Done : Exit::Rejected;
  }

 private:
  Result<void> check(const ScheduleArgument& schedule, const std::vector<Axis>& axes) {
    const Result<std::vector<Argument>> arguments = read_arguments(schedule.parameters);
    if (!arguments) return arguments.failure();
    const Result<Loaded> read = load(schedule.file, arguments_.schedules);
    if (!read) return read.failure();
    const Loaded& loaded = read.value();
    if (!axes.empty() && loaded.ok()) return grid(loaded, arguments.value(), axes);
    Built built;
    const Result<Outcome> outcome = build(built, loaded, arguments.value(), Step::Priced);
    if (!outcome) return outcome.failure();
    const bool good = outcome.value() == Outcome::Done && !built.expects.has_errors();
    good_ = good_ && good;
    if (arguments_.json) {
      entries_.push_back({{"file", valid_utf8(loaded.sources[loaded.source].name)}, {"ok", good}, {"diagnostics", diagnostics(loaded, built)}});
      if (good) {
        entries_.back()["ops"] = built.table->size();
        entries_.back()["devices"] = built.schedule->devices;
        entries_.back()["messages"] = built.program->messages.size();
      }
      return {};
    }
    print_all(loaded, built);
    if (good)
      text_ += fmt::format("{}: {}: {} on {}, {}, {}\n", loaded.name(), title_of(*built.schedule),
                           count(built.table->size(), "op"), count(built.schedule->devices, "device"),
                           count(built.program->messages.size(), "message"), built.expect_counts.text());
    return {};
  }

  Result<void> grid(const Loaded& loaded, const std::vector<Argument>& arguments, const std::vector<Axis>& axes) {
    const Result<GridReport> checked = check_grid(loaded, arguments, axes);
    if (!checked) return checked.failure();
    const GridReport& report = checked.value();
    const bool good = report.failed == 0 && report.passed() > 0;
    good_ = good_ && good;
    if (arguments_.json) {
      Json entry = {{"file", valid_utf8(loaded.sources[loaded.source].name)},
                    {"ok", good},
                    {"tried", report.cases},     {"passed", report.passed()},
                    {"refused", report.refused}, {"failed", report.failed}};
      if (report.smallest_built) {
        for (const Argument& each : report.smallest)
          entry["smallest"]["parameters"][each.name] =
              each.number.whole() ? Json(each.number.numerator()) : Json(each.number.to_double());
        entry["smallest"]["diagnostics"] = diagnostics(loaded, *report.smallest_built);
      }
      entries_.push_back(std::move(entry));
      return {};
    }
    text_ += fmt::format("{}: {} tried: {} passed, {} refused by a `require`, {} failed\n", loaded.name(),
                         count(report.cases, "case"), report.passed(), report.refused, report.failed);
    if (report.passed() == 0 && report.failed == 0) text_ += "no case is left, so nothing was checked\n";
    if (report.smallest_built) {
      text_ += fmt::format("the smallest that failed: {}\n", text_of(report.smallest));
      print_all(loaded, *report.smallest_built);
    }
    return {};
  }

  static Json diagnostics(const Loaded& loaded, const Built& built) {
    Json result = Json::array();
    for (const Diagnostics* sink : {&loaded.sink, &built.sink, &built.expects})
      for (const Json& each : diagnostics_json(loaded.sources, *sink)) result.push_back(each);
    return result;
  }

  static void print_all(const Loaded& loaded, const Built& built) {
    for (const Diagnostics* sink : {&loaded.sink, &built.sink, &built.expects}) print_diagnostics(loaded.sources, *sink);
    for (const std::string& note : built.notes) print_error(printable(fmt::format("note: {}\n", note)));
  }

  const CheckArguments& arguments_;
  std::string text_;
  Json entries_ = Json::array();
  bool good_ = true;
};

}  // namespace

CLI::App* add_check(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("check", "prove that schedules are complete, possible and as they claim");
  const auto arguments = std::make_shared<CheckArguments>();
  arguments->schedules.add_to(*command);
  command->add_option("--over", arguments->over,
                      "try every value of a parameter, both ends included, as P=1..12, with a step\n"
                      "as M=8..64..8, or a list as M=1,2,4; several make a grid")
      ->type_name("NAME=VALUES")
      ->allow_extra_args(false);
  command->add_flag("--json", arguments->json, "one JSON object");
  command->footer(
      "Examples:\n"
      "  stave check schedules/zb_h1.sched P=8 M=24\n"
      "  stave check schedules/zb_h1.sched --over P=1..12 --over M=1..40");
  command->callback([arguments, &exit] { exit = Checks(*arguments).run(); });
  return command;
}

}  // namespace stave
