// stave diff: two tables, the same order? Or two timelines, predicted against measured.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/measure/diff_text.h"
#include "cli/measure/read.h"
#include "cli/measure/table_diff.h"
#include "cli/measure/timeline_diff.h"
#include "cli/pipeline.h"

namespace stave {
namespace {

struct DiffArguments {
  ScheduleOptions schedules;
  bool json = false;
};

/// The same options for one of the schedules.
ScheduleOptions only(const ScheduleOptions& options, const ScheduleArgument& schedule) {
  ScheduleOptions result = options;
  result.words = {schedule.file};
  result.definitions.clear();
  for (const NamedText& each : schedule.parameters) result.words.push_back(each.name + "=" + each.value);
  return result;
}

template <class Diff>
Exit show(const Diff& diff, const DiffNames& names, bool json, Exit exit) {
  const Result<void> printed = print(json ? diff_json(diff, names).dump(2) + "\n" : diff_text(diff, names));
  return printed ? exit : fail(printed.failure().message);
}

Exit diff_timelines(const DiffArguments& arguments, const std::vector<ScheduleArgument>& files) {
  std::vector<RecordedTimeline> timelines;
  std::vector<std::string> names;
  for (const ScheduleArgument& each : files) {
    if (!each.parameters.empty())
      return fail(fmt::format("`{}` is a timeline, and takes no parameters", each.file));
    Result<RecordedTimeline> timeline = load_timeline(each.file);
    if (!timeline) return fail(timeline.failure().message);
    names.push_back(printable(fmt::format("{}: {}, {}", each.file, words_of(timeline->origin), timeline->schedule)));
    timelines.push_back(std::move(*timeline));
  }
  const Result<TimelineDiff> diff = compare_timelines(timelines[0], timelines[1]);
  if (!diff) return fail(diff.failure().message);
  return show(diff.value(), {names[0], names[1]}, arguments.json, Exit::Done);
}

Exit diff_tables(const DiffArguments& arguments, const std::vector<ScheduleArgument>& files) {
  One built[2];
  for (int i : {0, 1})
    if (const Exit exit = build_one(built[i], only(arguments.schedules, files[i]), Step::Table); exit != Exit::Done)
      return exit;
  const TableDiff diff = compare_tables(*built[0].built.table, *built[1].built.table);
  DiffNames names{title_of(*built[0].built.schedule), title_of(*built[1].built.schedule)};
  // Two files with schedules of one name.
  if (names.first == names.second) names = {built[0].loaded.name(), built[1].loaded.name()};
  return show(diff, names, arguments.json, diff.different == 0 ? Exit::Done : Exit::Rejected);
}

Exit diff(const DiffArguments& arguments) {
  const Result<std::vector<ScheduleArgument>> files = schedule_arguments(arguments.schedules, true);
  if (!files) return fail(files.failure().message);
  if (files.value().size() != 2)
    return fail(fmt::format("two files are laid side by side, and there {} {}", files.value().size() == 1 ? "is" : "are",
                            files.value().size()));
  for (const ScheduleArgument& file : files.value())
    if (std::error_code error; file.file != "-" && !std::filesystem::exists(file.file, error))
      return fail(fmt::format("cannot read {}: no such file", printable(file.file)));
  const bool first = looks_like_timeline(files.value()[0].file);
  if (first != looks_like_timeline(files.value()[1].file))
    return fail(fmt::format("`{}` is a timeline, and `{}` is none", files.value()[first ? 0 : 1].file, files.value()[first ? 1 : 0].file));
  return first ? diff_timelines(arguments, files.value()) : diff_tables(arguments, files.value());
}

}  // namespace

CLI::App* add_diff(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("diff", "two tables: the same order? two timelines: predicted against measured");
  const auto arguments = std::make_shared<DiffArguments>();
  arguments->schedules.add_to(*command);
  command->add_flag("--json", arguments->json, "one JSON object; times in the unit of the first timeline");
  command->footer(
      "Two schedules end with status 1 if a device runs other ops or in another order.\n\n"
      "Example:\n  stave simulate zb_h1 --timeline predicted.json\n  stave diff predicted.json measured.json");
  command->callback([arguments, &exit] { exit = diff(*arguments); });
  return command;
}

}  // namespace stave
