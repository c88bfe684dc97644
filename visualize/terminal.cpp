#include "visualize/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "visualize/labels.h"
#include "visualize/lines.h"
#include "visualize/window.h"

namespace stave {
namespace {

/// The shades of a Colour, of the 256 colours of terminals: for even and for odd chunks.
struct Shade {
  int even;
  int odd;
};
constexpr std::array<Shade, kColours> kShades = {{
    {111, 75},  // blue
    {123, 80},  // cyan
    {157, 114},  // green
    {79, 43},  // teal
    {183, 141},  // purple
    {222, 215},  // orange
    {229, 227},  // yellow
    {252, 247},  // grey
}};
static_assert(kShades.back().odd > 0, "a colour has no shades");

struct Glyphs {
  std::string_view bar;
  std::string_view run;
  std::string_view axis;
  std::string_view tick;
};
constexpr Glyphs kUnicode = {"│", "─", "─", "┬"};
constexpr Glyphs kAscii = {"|", "-", "-", "+"};

/// How time becomes columns.
struct Scale {
  double columns_per_tick = 1;
  /// Boxes have a bar before them.
  bool bars = true;
  Ticks begin = 0;
  Ticks end = 0;
  std::uint32_t columns = 0;

  std::uint32_t column(Ticks time) const {
    const double at = std::round(static_cast<double>(time - begin) * columns_per_tick);
    return static_cast<std::uint32_t>(std::clamp(at, 0.0, static_cast<double>(columns)));
  }
};

class Drawing {
 public:
  Drawing(const Table& table, const Timeline& timeline, const TerminalOptions& options)
      : table_(table),
        timeline_(timeline),
        options_(options),
        glyphs_(options.ascii ? kAscii : kUnicode),
        labels_(table),
        lines_(table, timeline, std::min(options.first_device, table.devices()),
               std::min(options.first_device, table.devices()) +
                   std::min(options.devices, table.devices() - std::min(options.first_device, table.devices()))),
        length_(last_end(table, timeline)),
        durations_(durations(table, timeline)) {
    first_ = std::min(options.first_device, table.devices());
    last_ = first_ + std::min(options.devices, table.devices() - first_);
    heading_ = 9;
    for (const Lines::Line& line : lines_.all()) heading_ = std::max(heading_, line.name.size() + 1);
    choose_scale();
  }

  std::string text() {
    std::string result = axis();
    for (const Lines::Line& line : lines_.all()) result += row(line);
    return result + remarks();
  }

 private:
  /// Longest label of the devices shown, of a sample where there are many ops.
  std::uint32_t label_width() const {
    std::size_t result = 2;
    for (std::uint32_t d = first_; d < last_; ++d) {
      const std::uint32_t step = std::max(1u, (table_.first[d + 1] - table_.first[d]) / 2048);
      for (std::uint32_t position = table_.first[d]; position < table_.first[d + 1]; position += step)
        result = std::max(result, labels_.whole(position).size());
    }
    return static_cast<std::uint32_t>(result);
  }

  void choose_scale() {
    const double room = std::max<double>(20, static_cast<double>(std::max(options_.width, 40u)) -
                                                 static_cast<double>(heading_) - 1);
    const double length = static_cast<double>(std::max<Ticks>(length_, 1));
    const double label = label_width();
    const double shortest = static_cast<double>(durations_.shortest);
    const double median = static_cast<double>(durations_.median);
    scale_.begin = options_.fit ? 0 : std::clamp<Ticks>(options_.from, 0, std::max<Ticks>(length_ - 1, 0));

    // Roomy boxes with bars, if all of it fits; then boxes just as wide as their labels; then a window of it: better a
    // part than labels that two ops have. Where some ops are far shorter than most they are left without.
    const bool some_are_slivers = shortest * 4 < median;
    const double spacious = (label + (is_even() ? 1 : 2)) / (some_are_slivers ? median : shortest);
    const double tight = label / shortest;
    if (length * spacious <= room) {
      scale_.columns_per_tick = some_are_slivers ? room / length : spacious;
    } else if (length * tight <= room && is_even() && !labels_.several_stages()) {
      scale_.columns_per_tick = tight;
      scale_.bars = false;
    } else if (options_.fit) {
      scale_.columns_per_tick = room / length;
      scale_.bars = scale_.columns_per_tick * shortest >= 3;
    } else {
      scale_.columns_per_tick = spacious;
    }
    fills_ = scale_.columns_per_tick == room / length;
    scale_.columns = static_cast<std::uint32_t>(
        std::min(room, std::ceil(static_cast<double>(length_ - scale_.begin) * scale_.columns_per_tick)));
    const double shown = static_cast<double>(scale_.columns) / scale_.columns_per_tick;
    scale_.end = std::min(length_, scale_.begin + static_cast<Ticks>(std::ceil(shown)));
  }

  /// True if every op begins and ends at a multiple of the shortest, so that no box loses a column to rounding.
  bool is_even() const {
    for (std::uint32_t position = 0; position < table_.size(); ++position)
      if (timeline_.start[position] % durations_.shortest != 0 || timeline_.end[position] % durations_.shortest != 0)
        return false;
    return true;
  }

  double units(Ticks time) const {
    return static_cast<double>(time) / static_cast<double>(timeline_.ticks_per_unit);
  }

  std::string axis() const {
    const double columns_per_unit = scale_.columns_per_tick * static_cast<double>(timeline_.ticks_per_unit);
    const std::size_t widest = in_units(units(scale_.end)).size();
    const double step = axis_step(static_cast<double>(widest + 3) / columns_per_unit);
    std::string numbers(heading_, ' ');
    std::vector<bool> ticks(scale_.columns, false);
    std::size_t written = heading_;
    for (double at : axis_marks(units(scale_.begin), units(scale_.end), step)) {
      const double column = std::round((at - units(scale_.begin)) * columns_per_unit);
      if (column < 0 || column >= scale_.columns) continue;
      const std::size_t c = heading_ + static_cast<std::size_t>(column);
      if (c < written) continue;
      const std::string number = in_units(at);
      numbers += std::string(c - written, ' ') + number;
      written = c + number.size();
      ticks[static_cast<std::size_t>(column)] = true;
    }
    std::string rule(heading_, ' ');
    for (bool tick : ticks) rule += tick ? glyphs_.tick : glyphs_.axis;
    return paint(numbers, 90) + "\n" + paint(rule, 90) + "\n";
  }

  /// What stands in the box of an op: the longest of its labels that leaves its room.
  std::string label(std::uint32_t position, std::size_t room) const {
    // A label without its stage would be that of another op.
    const std::vector<std::string> all = labels_.of(position);
    for (const std::string& each : {all.front(), all.back()})
      if (each.size() <= room) return each;
    return "";
  }

  std::string row(const Lines::Line& of) {
    // A stream stands to the right, below its device.
    const bool beside = of.lane != of.device.value;
    std::string line = beside ? fmt::format("{:>{}} ", of.name, heading_ - 1) : fmt::format("{:<{}}", of.name, heading_);
    std::uint32_t column = 0;
    bool after_box = false;
    bool goes_on = false;
    const auto idle_until = [&](std::uint32_t until) {
      if (column >= until) return;
      // A bar ends the box before, so that its length can be seen.
      const bool bar = after_box && scale_.bars && !options_.colour;
      if (bar) line += glyphs_.bar;
      line.append(until - column - (bar ? 1 : 0), ' ');
      column = until;
      after_box = false;
    };
    for (std::uint32_t position : lines_.between(of, scale_.begin, scale_.end)) {
      const std::uint32_t end = scale_.column(timeline_.end[position]);
      const std::uint32_t begin = std::max(column, scale_.column(timeline_.start[position]));
      if (end <= begin) {
        ++too_narrow_;
        continue;
      }
      idle_until(begin);
      line += box(of.device, position, end - begin, timeline_.start[position] >= scale_.begin);
      column = end;
      after_box = true;
      goes_on = timeline_.end[position] > scale_.end;
    }
    if (after_box && !goes_on && scale_.bars && !options_.colour) line += glyphs_.bar;
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  std::string box(DeviceId device, std::uint32_t position, std::uint32_t width, bool begins_here) const {
    const OpId op = table_.entries[position];
    const bool bar = scale_.bars && begins_here && width >= 2;
    const std::size_t room = width - (bar ? 1 : 0);
    const std::string text = label(position, room);
    std::string result;
    if (bar) result += options_.colour ? (options_.ascii ? " " : "▏") : glyphs_.bar;
    result += text;
    for (std::size_t i = text.size(); i < room; ++i) result += options_.colour ? " " : glyphs_.run;
    if (!options_.colour) return result;
    const Shade& shade = kShades[static_cast<std::size_t>(info(table_.ops.kind(op).operation).colour)];
    // Without bars neighbours are told apart by their shades.
    const bool odd = (labels_.several_stages() ? labels_.chunk(device, op) : table_.ops.microbatch(op)) % 2 == 1;
    return fmt::format("\x1b[38;5;16;48;5;{}m{}\x1b[0m", odd ? shade.odd : shade.even, result);
  }

  std::string remarks() const {
    std::string result;
    if (scale_.begin > 0 || scale_.end < length_) {
      result += fmt::format("shown: {} to {} of {}", in_units(units(scale_.begin)), in_units(units(scale_.end)),
                            in_units(units(length_)));
      if (scale_.end < length_) result += fmt::format("; --from {} goes on", in_units(units(scale_.end)));
      result += "; --width N for more columns, --fit for all of it\n";
    }
    if (first_ > 0 || last_ < table_.devices()) {
      result += first_ == last_ ? fmt::format("no such device; there are {}\n", table_.devices())
                                : fmt::format("shown: devices {} to {} of {}; --devices FIRST..END for others\n", first_,
                                              last_ - 1, table_.devices());
    }
    if (durations_.nothing > 0)
      result += fmt::format("not shown: {} op{} no time\n", durations_.nothing,
                            durations_.nothing == 1 ? " that lasts" : "s that last");
    if (too_narrow_ > 0)
      result += fmt::format("not shown: {} op{} narrower than a column{}\n", too_narrow_, too_narrow_ == 1 ? "" : "s",
                            fills_ ? "; --width N for more columns" : "; `stave table` lists every op");
    return result;
  }

  std::string paint(const std::string& text, int code) const {
    return options_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  const Table& table_;
  const Timeline& timeline_;
  const TerminalOptions& options_;
  const Glyphs& glyphs_;
  Labels labels_;
  Lines lines_;
  Ticks length_ = 0;
  Durations durations_;
  Scale scale_;
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
  std::size_t heading_ = 0;
  /// The columns are those of the width, not of the labels.
  bool fills_ = false;
  /// Ops of the window that found no column.
  std::uint64_t too_narrow_ = 0;
};

}  // namespace

std::string draw_terminal(const Table& table, const Timeline& timeline, const TerminalOptions& options) {
  return Drawing(table, timeline, options).text();
}

}  // namespace stave
