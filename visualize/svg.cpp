#include "visualize/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include "visualize/labels.h"
#include "visualize/lines.h"
#include "visualize/window.h"

namespace stave {
namespace {

/// The shades of a Colour: fill for even and for odd chunks, and outline.
struct Shade {
  std::string_view even;
  std::string_view odd;
  std::string_view line;
};
constexpr std::array<Shade, kColours> kShades = {{
    {"#a9cbf5", "#7fb0ec", "#2f6db5"},  // blue
    {"#a5e3e8", "#74d0d8", "#1f8a93"},  // cyan
    {"#bfe6b0", "#98d482", "#4a8f31"},  // green
    {"#8fdcc0", "#5fc8a3", "#1c8562"},  // teal
    {"#d9c2f0", "#c09de6", "#7447a8"},  // purple
    {"#fad3a0", "#f5b866", "#b06f12"},  // orange
    {"#f3e9a6", "#e8d96f", "#94830f"},  // yellow
    {"#dcdfe3", "#c2c7cd", "#6b737c"},  // grey
}};
static_assert(!kShades.back().line.empty(), "a colour has no shades");

constexpr std::string_view kFont = "font-family=\"Inter,Helvetica,Arial,sans-serif\"";
constexpr double kRow = 34;
constexpr double kBox = 28;
constexpr double kMargin = 24;
constexpr double kDigit = 6.7;
constexpr double kWidest = 2400;
constexpr double kNarrowest = 640;

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default:
        // XML allows no control characters.
        if (static_cast<unsigned char>(c) >= 0x20) result += c;
    }
  }
  return result;
}

const Shade& shade_of(const OpKind& kind) {
  return kShades[static_cast<std::size_t>(info(kind.operation).colour)];
}

class Picture {
 public:
  Picture(const Program& program, const Timeline& timeline, const SvgOptions& options)
      : program_(program),
        table_(program.table),
        timeline_(timeline),
        options_(options),
        labels_(program.table),
        lines_(program.table, timeline, 0, std::min(program.table.devices(), options.most_devices)),
        length_(last_end(program.table, timeline)),
        durations_(durations(program.table, timeline)) {
    rows_ = std::min(table_.devices(), options.most_devices);
    begin_ = std::clamp<Ticks>(options.from, 0, std::max<Ticks>(length_ - 1, 0));
    line_of_.assign(rows_, 0);
    for (std::uint32_t i = 0; i < lines_.all().size(); ++i)
      if (const Lines::Line& line = lines_.all()[i]; line.lane == line.device.value) line_of_[line.device.value] = i;
    choose_end();
    choose_scale();
  }

  std::string text() {
    head();
    axis();
    rows();
    if (options_.messages) messages();
    legend();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// The latest end for which the boxes of all rows are at most `most_boxes`.
  void choose_end() {
    end_ = length_;
    if (count(length_) <= options_.most_boxes) return;
    Ticks enough = begin_;
    Ticks too_much = length_;
    while (too_much - enough > 1) {
      const Ticks middle = enough + (too_much - enough) / 2;
      (count(middle) <= options_.most_boxes ? enough : too_much) = middle;
    }
    end_ = std::max(enough, begin_ + 1);
  }

  /// Ops of the rows that start in begin_ .. end.
  std::uint64_t count(Ticks end) const {
    std::uint64_t result = 0;
    const auto base = timeline_.start.begin();
    for (std::uint32_t d = 0; d < rows_; ++d) {
      const auto first = base + table_.first[d];
      const auto last = base + table_.first[d + 1];
      result += static_cast<std::uint64_t>(
          std::count_if(first, last, [&](Ticks start) { return start >= begin_ && start < end; }));
    }
    return result;
  }

  void choose_scale() {
    left_ = kMargin + static_cast<double>(fmt::format("device {}", rows_).size()) * kDigit + 6;
    std::size_t label = 2;
    for (std::uint32_t d = 0; d < rows_; ++d)
      for (std::uint32_t position = table_.first[d]; position < std::min(table_.first[d + 1], table_.first[d] + 1024);
           ++position)
        label = std::max(label, labels_.whole(position).size());
    const double length = static_cast<double>(std::max<Ticks>(end_ - begin_, 1));
    const double shortest = static_cast<double>(std::max(durations_.shortest, durations_.median / 4));
    const double wanted = (static_cast<double>(label) * kDigit + 8) * length / shortest;
    drawn_ = std::clamp(wanted, kNarrowest, kWidest);
    // Many boxes may be wider than the usual page, so that each can still be seen.
    drawn_ = std::max(drawn_, std::min(length / shortest * 3, 20000.0));
    scale_ = drawn_ / length;
    top_ = kMargin + (options_.title.empty() ? 0 : 24) + (options_.subtitle.empty() ? 0 : 20) + (partial() ? 18 : 0) + 20;
    width_ = left_ + drawn_ + kMargin;
    height_ = top_ + kRow * static_cast<double>(lines_.all().size()) + 56;
  }

  bool partial() const { return begin_ > 0 || end_ < length_ || rows_ < table_.devices(); }
  double x(Ticks time) const { return left_ + static_cast<double>(std::clamp(time, begin_, end_) - begin_) * scale_; }
  double y(std::uint32_t line) const { return top_ + kRow * line; }
  double units(Ticks time) const {
    return static_cast<double>(time) / static_cast<double>(timeline_.ticks_per_unit);
  }

  void head() {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "{} font-size=\"12\" fill=\"#1f2430\">\n",
        width_, height_, width_, height_, kFont);
    put("<title>{}</title>\n", escaped(options_.title));
    put("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    double line = kMargin + 14;
    if (!options_.title.empty()) {
      put("<text x=\"{}\" y=\"{}\" font-size=\"17\" font-weight=\"600\">{}</text>\n", kMargin, line,
          escaped(options_.title));
      line += 22;
    }
    if (!options_.subtitle.empty()) {
      put("<text x=\"{}\" y=\"{}\" fill=\"#565d6b\">{}</text>\n", kMargin, line, escaped(options_.subtitle));
      line += 18;
    }
    if (partial()) {
      put("<text x=\"{}\" y=\"{}\" fill=\"#a3420e\">A part: time {} to {} of {}, devices 0 to {} of {}.</text>\n",
          kMargin, line, in_units(units(begin_)), in_units(units(end_)), in_units(units(length_)),
          rows_ == 0 ? 0 : rows_ - 1, table_.devices());
    }
  }

  void axis() {
    const double per_unit = scale_ * static_cast<double>(timeline_.ticks_per_unit);
    const double widest = static_cast<double>(in_units(units(end_)).size());
    const double step = axis_step((widest * kDigit + 24) / per_unit);
    const double bottom = y(static_cast<std::uint32_t>(lines_.all().size())) + 2;
    put("<g stroke=\"#e3e6ea\" stroke-width=\"1\">\n");
    std::string numbers;
    for (double at : axis_marks(units(begin_), units(end_), step)) {
      const double place = left_ + (at - units(begin_)) * per_unit;
      put("<path d=\"M{:.2f} {:.1f}V{:.1f}\"/>\n", place, top_ - 4, bottom);
      numbers += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\">{}</text>\n", place, bottom + 14, in_units(at));
    }
    out_ += "</g>\n<g fill=\"#565d6b\" font-size=\"11\" text-anchor=\"middle\">\n" + numbers + "</g>\n";
  }

  void rows() {
    std::string texts;
    put("<g stroke-width=\"0.8\">\n");
    for (std::uint32_t i = 0; i < lines_.all().size(); ++i) {
      const Lines::Line& line = lines_.all()[i];
      const double box_top = y(i) + (kRow - kBox) / 2;
      texts += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#565d6b\">{}</text>\n",
                           left_ - 8, box_top + kBox / 2 + 4, escaped(line.name));
      // Idle time is the empty part of this band.
      put("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"#f4f5f7\"/>\n", left_, box_top, drawn_,
          kBox);
      for (std::uint32_t position : lines_.between(line, begin_, end_)) box(line.device, position, box_top, texts);
    }
    out_ += "</g>\n<g font-size=\"11.5\">\n" + texts + "</g>\n";
  }

  void box(DeviceId device, std::uint32_t position, double box_top, std::string& texts) {
    const double left = x(timeline_.start[position]);
    const double width = x(timeline_.end[position]) - left;
    const auto part = [&](OpId op, double top, double height) {
      const Shade& shade = shade_of(table_.ops.kind(op));
      const bool odd = labels_.chunk(device, op) % 2 == 1;
      put("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n",
          left + 0.4, top, std::max(width - 0.8, 0.3), height, width > 8 ? 2.5 : 0, odd ? shade.odd : shade.even,
          shade.line);
    };
    // The two of a pair lie one above the other: both run for as long.
    const OpId other = labels_.partner(position);
    part(table_.entries[position], box_top, other.valid() ? kBox / 2 : kBox);
    if (other.valid()) part(other, box_top + kBox / 2, kBox / 2);
    if (other.valid()) return pair_label(position, left, width, box_top, texts);
    for (const std::string& label : labels_.of(position)) {
      if (static_cast<double>(label.size()) * kDigit + 2 > width) continue;
      texts += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", left + width / 2,
                           box_top + kBox / 2 + 4, escaped(label));
      break;
    }
  }

  /// Each half of a pair has its own.
  void pair_label(std::uint32_t position, double left, double width, double box_top, std::string& texts) {
    for (const std::string& label : labels_.of(position)) {
      const std::size_t plus = label.find('+');
      const std::array<std::string, 2> halves = {label.substr(0, plus), label.substr(plus + 1)};
      if (static_cast<double>(std::max(halves[0].size(), halves[1].size())) * kDigit + 2 > width) continue;
      for (std::size_t i = 0; i < halves.size(); ++i)
        texts += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" font-size=\"10\" text-anchor=\"middle\">{}</text>\n",
                             left + width / 2, box_top + kBox / 4 * (2 * static_cast<double>(i) + 1) + 3.5,
                             escaped(halves[i]));
      return;
    }
  }

  /// From the end of the sender's box to the start of the receiver's.
  void messages() {
    put("<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"5.5\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" "
        "orient=\"auto\"><path d=\"M0 0.6L6 3L0 5.4z\" fill=\"#50586a\"/></marker></defs>\n");
    put("<g stroke=\"#50586a\" stroke-width=\"0.7\" stroke-opacity=\"0.7\" marker-end=\"url(#tip)\">\n");
    std::uint32_t drawn = 0;
    for (std::uint32_t m = 0; m < program_.messages.size() && drawn < options_.most_boxes; ++m) {
      const Message& message = program_.messages[m];
      const Edge& edge = program_.edges[message.edge.value];
      const NodeId node = program_.node(MessageId(m));
      if (message.payload == 0 || edge.source.value >= rows_ || edge.target.value >= rows_) continue;
      if (timeline_.start[node.value] < begin_ || timeline_.end[node.value] > end_) continue;
      const bool down = edge.target > edge.source;
      const double from_y = y(line_of_[edge.source.value]) + kRow / 2 + (down ? kBox / 2 : -kBox / 2);
      const double to_y = y(line_of_[edge.target.value]) + kRow / 2 + (down ? -kBox / 2 : kBox / 2);
      put("<path d=\"M{:.2f} {:.1f}L{:.2f} {:.1f}\"/>\n", x(timeline_.start[node.value]), from_y,
          x(timeline_.end[node.value]), to_y);
      ++drawn;
    }
    put("</g>\n");
  }

  void legend() {
    double place = left_;
    const double line = height_ - 20;
    const auto entry = [&](std::string_view fill, std::string_view stroke, const std::string& text) {
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\" rx=\"2\" fill=\"{}\" stroke=\"{}\"/>\n", place,
          line - 10, fill, stroke);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", place + 20, line, escaped(text));
      place += 20 + static_cast<double>(text.size()) * kDigit + 18;
    };
    std::vector<bool> used(table_.ops.kinds().size(), false);
    for (OpId op : table_.entries) used[table_.ops.kind_of(op).value] = true;
    for (std::uint32_t k = 0; k < used.size(); ++k) {
      if (!used[k]) continue;
      const OpKind& kind = table_.ops.kinds()[KindId(k)];
      const Shade& shade = shade_of(kind);
      entry(shade.even, shade.line, kind.name + " " + std::string(info(kind.operation).words));
    }
    entry("#f4f5f7", "#d5d9de", "idle");
    if (!timeline_.unit.empty())
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#565d6b\">time in {}</text>\n", width_ - kMargin,
          line, escaped(timeline_.unit));
  }

  const Program& program_;
  const Table& table_;
  const Timeline& timeline_;
  const SvgOptions& options_;
  Labels labels_;
  Lines lines_;
  /// Of each device drawn, the line of its computing.
  std::vector<std::uint32_t> line_of_;
  Ticks length_ = 0;
  Durations durations_;
  std::uint32_t rows_ = 0;
  Ticks begin_ = 0;
  Ticks end_ = 0;
  double left_ = 0;
  double top_ = 0;
  double drawn_ = 0;
  double scale_ = 1;
  double width_ = 0;
  double height_ = 0;
  std::string out_;
};

}  // namespace

std::string draw_svg(const Program& program, const Timeline& timeline, const SvgOptions& options) {
  return Picture(program, timeline, options).text();
}

}  // namespace stave
