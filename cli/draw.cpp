// stave draw: the schedule as an SVG picture.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/pipeline.h"
#include "cli/report.h"
#include "visualize/svg.h"

namespace stave {
namespace {

struct DrawArguments {
  ScheduleOptions schedule;
  std::string output;
  double from = 0;
  bool messages = false;
};

Exit draw(const DrawArguments& arguments) {
  if (const Result<void> checked = check_output(arguments.output, files_of(arguments.schedule)); !checked)
    return fail(checked.failure().message);
  One one;
  if (const Exit exit = build_one(one, arguments.schedule, Step::Priced); exit != Exit::Done) return exit;
  const Built& built = one.built;
  SvgOptions options;
  options.title = title_of(*built.schedule);
  options.subtitle = summary_of(built);
  options.messages = arguments.messages;
  const double ticks = arguments.from * static_cast<double>(built.timeline->ticks_per_unit);
  options.from = ticks < static_cast<double>(kMaxTicks) ? static_cast<Ticks>(std::llround(ticks)) : kMaxTicks;
  const Result<void> written = write_output(arguments.output, draw_svg(*built.program, *built.timeline, options),
                                            files_of(arguments.schedule, one.loaded));
  return written ? Exit::Done : fail(written.failure().message);
}

}  // namespace

CLI::App* add_draw(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("draw", "the schedule as a picture file (SVG)");
  const auto arguments = std::make_shared<DrawArguments>();
  arguments->schedule.add_to(*command);
  arguments->schedule.contention.add_to(*command);
  command->add_option("-o,--output", arguments->output, "the file to write, - for standard output")
      ->required()
      ->type_name("FILE");
  command->add_option("--from", arguments->from, "where the picture begins, in the unit of the costs")
      ->check(between(0, 1e18))
      ->type_name("TIME");
  command->add_flag("--messages", arguments->messages, "an arrow for every message");
  command->footer("Example:\n  stave draw schedules/zb_h1.sched P=4 M=8 -o zb_h1.svg");
  command->callback([arguments, &exit] { exit = draw(*arguments); });
  return command;
}

}  // namespace stave
