// Pictures of small schedules whose times a reader can check by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "visualize/labels.h"
#include "visualize/svg.h"
#include "visualize/terminal.h"
#include "visualize/window.h"

namespace stave {
namespace {

/// The training ops F, I, W and B over stages and microbatches.
OpSet training(std::uint32_t stages, std::uint32_t microbatches) {
  OpSet ops;
  const std::vector<OpIndex> indices = {{"s", IndexRole::Stage, stages}, {"m", IndexRole::Microbatch, microbatches}};
  for (std::string_view letter : {"F", "I", "W", "B"}) {
    OpKind kind;
    kind.name = letter;
    kind.operation = operation_of(letter);
    kind.indices = indices;
    if (letter == "B") kind.parts = {KindId(1), KindId(2)};
    REQUIRE(ops.add(kind));
  }
  return ops;
}

struct Scene {
  Program program;
  Timeline timeline;
};

struct Box {
  std::string_view letter;
  std::uint32_t stage;
  std::uint32_t microbatch;
  Ticks start;
  Ticks end;
};

Scene scene(std::uint32_t stages, std::uint32_t microbatches, const std::vector<std::vector<Box>>& devices) {
  Scene result;
  Table& table = result.program.table;
  table.ops = training(stages, microbatches);
  for (const std::vector<Box>& row : devices) {
    for (const Box& box : row) {
      const std::array<std::uint32_t, 2> index = {box.stage, box.microbatch};
      table.entries.push_back(table.ops.id(table.ops.find(box.letter), index));
      result.timeline.start.push_back(box.start);
      result.timeline.end.push_back(box.end);
    }
    table.first.push_back(table.size());
  }
  return result;
}

/// 1F1B of two devices and two microbatches, B of two units.
Scene two_devices() {
  return scene(2, 2,
               {{{"F", 0, 0, 0, 1}, {"F", 0, 1, 1, 2}, {"B", 0, 0, 4, 6}, {"B", 0, 1, 7, 9}},
                {{"F", 1, 0, 1, 2}, {"B", 1, 0, 2, 4}, {"F", 1, 1, 4, 5}, {"B", 1, 1, 5, 7}}});
}

TEST_CASE("the terminal shows boxes as long as their ops, and idle time empty") {
  const Scene s = two_devices();
  TerminalOptions options;
  options.width = 40;
  CHECK(draw_terminal(s.program.table, s.timeline, options) ==
        "         0     2     4     6     8\n"
        "         ┬─────┬─────┬─────┬─────┬──\n"
        "device 0 │F0│F1│     │B0───│  │B1───│\n"
        "device 1    │F0│B0───│F1│B1───│\n");
}

TEST_CASE("the terminal keeps to ASCII when asked") {
  const Scene s = two_devices();
  TerminalOptions options;
  options.width = 40;
  options.ascii = true;
  const std::string text = draw_terminal(s.program.table, s.timeline, options);
  CHECK(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  CHECK(text.find("device 0 |F0|F1|     |B0---|  |B1---|\n") != std::string::npos);
}

TEST_CASE("a picture too long for the terminal is a window that says so") {
  std::vector<Box> row;
  for (std::uint32_t m = 0; m < 100; ++m) row.push_back({"F", 0, m, m, m + 1});
  const Scene s = scene(1, 100, {row});
  TerminalOptions options;
  options.width = 60;
  options.from = 10;
  const std::string text = draw_terminal(s.program.table, s.timeline, options);
  CHECK(text.find("│F10│F11│") != std::string::npos);
  CHECK(text.find("shown: 10 to 23 of 100; --from 23 goes on") != std::string::npos);
  options.fit = true;
  CHECK(draw_terminal(s.program.table, s.timeline, options).find("goes on") == std::string::npos);
}

TEST_CASE("where a device has several stages no label loses its stage") {
  std::vector<Box> row;
  for (std::uint32_t m = 0; m < 20; ++m)
    for (std::uint32_t stage : {0u, 1u}) row.push_back({"F", stage, m, Ticks(4 * m + 2 * stage), Ticks(4 * m + 2 * stage + 2)});
  const Scene s = scene(2, 20, {row});
  TerminalOptions options;
  options.width = 60;
  options.ascii = true;
  const std::string text = draw_terminal(s.program.table, s.timeline, options);
  CHECK(text.find("device 0 |0F0-|1F0-|0F1-|") != std::string::npos);
  CHECK(text.find("--from 20 goes on") != std::string::npos);
}

TEST_CASE("ops that find no column are counted") {
  std::vector<Box> row;
  for (std::uint32_t m = 0; m < 4; ++m) {
    row.push_back({"F", 0, m, Ticks(1000 * m), Ticks(1000 * m + 999)});
    row.push_back({"W", 0, m, Ticks(1000 * m + 999), Ticks(1000 * m + 1000)});
  }
  const Scene s = scene(1, 4, {row});
  TerminalOptions options;
  options.width = 60;
  const std::string text = draw_terminal(s.program.table, s.timeline, options);
  CHECK(text.find("not shown: 2 ops narrower than a column; --width N for more columns") != std::string::npos);
}

TEST_CASE("colour only adds escapes") {
  const Scene s = two_devices();
  TerminalOptions options;
  options.width = 40;
  options.colour = true;
  CHECK(draw_terminal(s.program.table, s.timeline, options).find("\x1b[") != std::string::npos);
}

TEST_CASE("an empty device and an empty table are drawn") {
  TerminalOptions options;
  const Scene nothing = scene(1, 1, {});
  CHECK(!draw_terminal(nothing.program.table, nothing.timeline, options).empty());
  CHECK(draw_svg(nothing.program, nothing.timeline, {}).find("</svg>") != std::string::npos);
  const Scene idle = scene(1, 1, {{}, {{"F", 0, 0, 0, 1}}});
  CHECK(draw_terminal(idle.program.table, idle.timeline, options).find("device 0\n") != std::string::npos);
}

TEST_CASE("labels name the stage where a device has several") {
  const Scene s = scene(2, 1, {{{"F", 0, 0, 0, 1}, {"F", 1, 0, 1, 2}}});
  const Labels labels(s.program.table);
  CHECK(labels.several_stages());
  CHECK(labels.of(1) == std::vector<std::string>{"1F0", "F0", "F"});
  CHECK(labels.chunk(DeviceId(0), s.program.table.entries[1]) == 1);
  CHECK(!Labels(two_devices().program.table).several_stages());
}

TEST_CASE("an SVG stands by itself and bounds its size") {
  Scene s = two_devices();
  s.timeline.unit = "slots";
  SvgOptions options;
  options.title = "a < b & \"c\"";
  const std::string text = draw_svg(s.program, s.timeline, options);
  CHECK(text.find("a &lt; b &amp; &quot;c&quot;") != std::string::npos);
  CHECK(text.find("http") == text.rfind("http"));
  CHECK(text.find(">B0</text>") != std::string::npos);
  CHECK(text.find("A part") == std::string::npos);

  options.most_boxes = 3;
  const std::string part = draw_svg(s.program, s.timeline, options);
  CHECK(part.find("A part: time 0 to 2 of 9") != std::string::npos);
}

TEST_CASE("an axis has an end, however late its window is") {
  CHECK(axis_marks(0, 6, 2) == std::vector<double>{0, 2, 4, 6});
  CHECK(axis_marks(3, 6, 2) == std::vector<double>{4, 6});
  // 5e17 and its neighbours in steps of 10 are the same doubles.
  CHECK(axis_marks(5e17, 5e17 + 300, 10).size() <= 32);
  CHECK(axis_marks(0, 1e18, 1).size() == kMostMarks);
}

TEST_CASE("axis steps are round") {
  CHECK(axis_step(1) == doctest::Approx(1));
  CHECK(axis_step(1.1) == doctest::Approx(2));
  CHECK(axis_step(2.5) == doctest::Approx(5));
  CHECK(axis_step(600) == doctest::Approx(1000));
  CHECK(axis_step(0.03) == doctest::Approx(0.05));
  CHECK(in_units(0.5) == "0.5");
  CHECK(in_units(18522) == "18522");
}

}  // namespace
}  // namespace stave
