// stave show: the schedule as a grid in the terminal.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/pipeline.h"
#include "cli/report.h"
#include "visualize/terminal.h"

namespace stave {
namespace {

struct ShowArguments {
  ScheduleOptions schedule;
  std::uint32_t width = 0;
  double from = 0;
  std::string devices;
  bool fit = false;
  bool ascii = false;
};

/// `FIRST..END`, the last one not included, as in the language. Errors: no such range.
Result<void> read_devices(const std::string& text, TerminalOptions& options) {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  const char* const last = text.data() + text.size();
  const auto [dots, first_error] = std::from_chars(text.data(), last, first);
  if (first_error == std::errc() && last - dots > 2 && dots[0] == '.' && dots[1] == '.') {
    const auto [rest, error] = std::from_chars(dots + 2, last, end);
    if (error == std::errc() && rest == last && first < end) {
      options.first_device = first;
      options.devices = end - first;
      return {};
    }
  }
  return Failure{fmt::format("--devices takes FIRST..END, as 0..16, and not `{}`", text)};
}

Exit show(const ShowArguments& arguments) {
  TerminalOptions options;
  options.width = arguments.width == 0 ? terminal_width() : arguments.width;
  options.fit = arguments.fit;
  options.ascii = arguments.ascii;
  options.colour = wants_colour(Stream::Out);
  if (!arguments.devices.empty())
    if (const Result<void> read = read_devices(arguments.devices, options); !read) return fail(read.failure().message);
  One one;
  if (const Exit exit = build_one(one, arguments.schedule, Step::Priced); exit != Exit::Done) return exit;
  const Built& built = one.built;
  if (options.first_device >= built.table->devices())
    return fail(fmt::format("--devices begins with device {}, and they run from 0 to {}", options.first_device,
                            built.table->devices() - 1));
  const double ticks = arguments.from * static_cast<double>(built.timeline->ticks_per_unit);
  options.from = ticks < static_cast<double>(kMaxTicks) ? static_cast<Ticks>(std::llround(ticks)) : kMaxTicks;
  const Result<void> printed =
      print(fmt::format("{}\n\n{}\n{}\n", title_of(*built.schedule), draw_terminal(*built.table, *built.timeline, options),
                        summary_of(built)));
  return printed ? Exit::Done : fail(printed.failure().message);
}

}  // namespace

CLI::App* add_show(CLI::App& app, Exit& exit) {
  CLI::App* command = app.add_subcommand("show", "the schedule as a grid in the terminal, one line to a device");
  const auto arguments = std::make_shared<ShowArguments>();
  arguments->schedule.add_to(*command);
  arguments->schedule.contention.add_to(*command);
  command->add_option("--width", arguments->width, "columns to fill; by default those of the terminal")
      ->check(whole_between(40, 10000))
      ->type_name("N");
  command->add_option("--from", arguments->from, "where the picture begins, in the unit of the costs")
      ->check(between(0, 1e18))
      ->type_name("TIME");
  command->add_option("--devices", arguments->devices, "the devices to show, the last one not included")
      ->type_name("FIRST..END");
  command->add_flag("--fit", arguments->fit, "the whole length in one picture, whatever becomes of the labels");
  command->add_flag("--ascii", arguments->ascii, "letters, digits and punctuation only");
  command->footer("Example:\n  stave show schedules/one_f_one_b.sched P=4 M=8 --width 120");
  command->callback([arguments, &exit] { exit = show(*arguments); });
  return command;
}

}  // namespace stave
