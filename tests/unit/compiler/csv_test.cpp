// PyTorch's CSV tables: what is read, what is refused and with which words, and that what is written reads back.
#include "compiler/csv.h"

#include <string>
#include <vector>

#include "compiler/save_table.h"
#include "compiler/verify.h"
#include "doctest/doctest.h"
#include "tests/unit/support/training.h"

namespace stave {

namespace {

struct Read {
  Sources sources;
  Diagnostics sink;
  std::optional<Schedule> schedule;
  Table table;
};

/// The one list of each device, as a table.
Table listed(const Schedule& schedule) {
  std::vector<std::vector<OpId>> rows;
  for (const DeviceOrder& order : schedule.orders)
    rows.push_back(order.blocks.empty() ? std::vector<OpId>() : order.blocks[0].ops);
  return test::table_of(schedule, rows);
}

void finish(Read& read, const std::optional<Compiled>& compiled) {
  if (!compiled) return;
  read.schedule = expand(*compiled, {}, read.sink).schedule;
  if (!read.schedule) return;
  read.table = listed(*read.schedule);
  verify(*read.schedule, read.table, read.sink);
}

Read read_csv(const std::string& text) {
  Read result;
  const SourceId source = result.sources.add("t.csv", text);
  finish(result, compile_csv(result.sources, source, result.sink));
  return result;
}

Read read_sched(const std::string& text) {
  Read result;
  const SourceId source = result.sources.add("t.sched", text);
  finish(result, compile(result.sources, source, result.sink));
  return result;
}

/// "2:5 csv-cell: message [label] fix" of every error.
std::vector<std::string> errors(const std::string& text) {
  const Read read = read_csv(text);
  std::vector<std::string> result;
  for (const Diagnostic& each : read.sink.all()) {
    std::string line;
    if (each.primary.span.valid()) {
      const LineColumn place = read.sources.place(each.primary.span.source, each.primary.span.begin);
      line = std::to_string(place.line) + ":" + std::to_string(place.column) + " ";
    }
    line += std::string(each.kind) + ": " + each.message;
    if (!each.primary.text.empty()) line += " [" + each.primary.text + "]";
    result.push_back(line + (each.fix.empty() ? "" : " " + each.fix));
  }
  return result;
}

std::string one_error(const std::string& text) {
  const std::vector<std::string> all = errors(text);
  REQUIRE(all.size() == 1);
  return all[0];
}

}  // namespace

TEST_CASE("a table of two devices, in every way of writing it that is allowed") {
  for (const char* text : {"0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n", "0F0,0F1,,,0B0,0B1\n,1F0,1B0,1F1,1B1\n",
                           " 0F0 ,\t0F1,\"0B0\",0B01\n\"\",1F0,1B0, 1F1 ,1B1,,", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1"}) {
    CAPTURE(text);
    const Read read = read_csv(text);
    CHECK(read.sink.all().empty());
    REQUIRE(read.schedule);
    CHECK(read.schedule->devices == 2);
    CHECK(read.schedule->stages == 2);
    CHECK(read.schedule->microbatches == 2);
    const Result<std::string> written = write_csv(read.table);
    REQUIRE(written.ok());
    CHECK(written.value() == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  }
}

TEST_CASE("needs, costs and memory are those of the standard library") {
  const Read read = read_csv("0F0,1F0,1I0,0I0,0W0,1W0\n");
  CHECK(read.sink.all().empty());
  REQUIRE(read.schedule);
  CHECK(read.schedule->stages == 2);
  CHECK(read.schedule->payloads == std::vector<std::string>{"", "activation", "gradient"});
  const KindId forward = read.schedule->ops.find("F");
  CHECK(read.schedule->costs.duration[forward].values == std::vector<Rational>{1});
  CHECK(read.schedule->costs.memory_taken[forward].values == std::vector<Rational>{1});
}

TEST_CASE("what PyTorch lets through") {
  CHECK(one_error("0F0,0F0,0B0\n") == "1:5 repeated-op: `F(0, 0)` is written a second time [again]");
  CHECK(one_error("0F0,0F,0B0\n") ==
        "1:5 csv-cell: the microbatch of `0F` is missing [device 0, column 2] did you mean `0F0`?");
  CHECK(one_error("0F0x,0B0\n") ==
        "1:4 csv-cell: text after the op `0F0`, which PyTorch drops without a word [device 0, column 1]");
  CHECK(one_error("0F0 0F1,0B0\n") ==
        "1:5 csv-cell: text after the op `0F0`, which PyTorch drops without a word [device 0, column 1]");
  CHECK(one_error("0F-1,0B0\n") == "1:1 csv-cell: a microbatch is not negative [device 0, column 1]");
  CHECK(one_error("-1F0\n") == "1:1 csv-cell: a stage is not negative [device 0, column 1]");
  CHECK(one_error("\xEF\xBB\xBF"
                  "0F0,0B0\n") ==
        "1:1 csv-byte-order-mark: the file begins with a byte-order mark, which PyTorch takes for a part of its first "
        "cell save it as UTF-8 without a mark");
  CHECK(
      one_error("0F0,0BW0\n") ==
      "1:6 csv-old-letters: `BW` is how PyTorch before late 2024 wrote the full backward [device 0, column 2] its `B` "
      "was the input gradient: write I for each B, then B for each BW");
  CHECK(one_error("0F0,0B0,0W0\n") ==
        "1:5 csv-old-letters: this table has W and B but no I, so its B is the input gradient, as PyTorch wrote it "
        "before late 2024 write I for each B");
  CHECK(
      one_error("0F0,0B0\n\n") ==
      "2:1 csv-blank-line: line 2 is blank: PyTorch reads it as one more device without ops remove the line; a device "
      "that idles in one step has an empty cell, written \"\"");
  CHECK(one_error("0F0;0B0\n") == "1:4 csv-cell: cells are separated by commas, not by `;` [device 0, column 1]");
  CHECK(one_error("0f0\n") == "1:2 csv-cell: there is no op `f` [device 0, column 1] did you mean `F`?");
  CHECK(one_error("F0\n") ==
        "1:1 csv-cell: the stage is missing before `F` [device 0, column 1] write the stage first, as in `2F0`");
  CHECK(one_error("0F0,0B0,\"0W0\n") == "1:9 csv-cell: a quote that is not closed on its line [device 0, column 3]");
  CHECK(one_error("\"0F0\"x,0B0\n") == "1:6 csv-cell: text after the closing quote [device 0, column 1]");
  CHECK(one_error("\xEF\xBC\x90"
                  "F0\n") ==
        "1:1 csv-cell: this is no op [device 0, column 1] an op is its stage, F, I, W or B, and its microbatch, as in "
        "`2F0`");
}

TEST_CASE("an overlapped pair") {
  const Read read = read_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  REQUIRE(read.schedule);
  const OrderBlock& row = read.schedule->orders[DeviceId(0)].blocks.at(0);
  CHECK(row.ops.size() == 4);
  CHECK(row.pairs == std::vector<std::uint32_t>{1});
}

TEST_CASE("other formats and other features") {
  CHECK(one_error("0F0,0SEND_F0\n1RECV_F0,1F0\n") ==
        "1:5 csv-communication: `SEND_F` belongs to a table with communication (compute_comms), and this version reads "
        "tables of compute ops alone [device 0, column 2] export it as compute_only; stave finds the messages itself");
  CHECK(one_error("(0F1;0B0)F\n") ==
        "1:10 csv-cell: a pair in brackets is an OVERLAP_F_B [device 0, column 1] write `(0F7;7B3)OVERLAP_F_B`");
  CHECK(one_error("()OVERLAP_F_B\n").find("csv-cell: this is no op") != std::string::npos);
  CHECK(one_error("(0F1;0B0;0B1)OVERLAP_F_B\n").find("two ops overlap") != std::string::npos);
}

TEST_CASE("stages on one device each, without gaps") {
  CHECK(one_error("0F0,0B0\n0F1,0B1\n") ==
        "2:1 csv-stage: stage 0 stands in the rows of two devices, 0 and 1 [device 1]");
  CHECK(one_error("0F0,0B0\n2F0,2B0\n") ==
        "2:1 csv-stage: no row has an op of stage 1, but there is a stage 2 [the highest stage]");
  CHECK(one_error("0F0,0B0\n\"\"\n") == "idle-device: no op must run on device 1");
}

TEST_CASE("ops that are missing, and orders that are impossible") {
  CHECK(one_error("0F0,0B0,0F1\n") ==
        "1:5 missing-op: `B(0, 1)` is missing on device 0 [the last `B` of device 0 comes from here]");
  CHECK(one_error("0B0,0F0\n") ==
        "1:1 backward-before-forward: `B0` on device 0 runs before its forward `F0` [backward of microbatch 0]");
  const Read read = read_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  REQUIRE(read.sink.all().size() == 1);
  CHECK(read.sink.all()[0].kind == "order-cycle");
  CHECK(read.sink.all()[0].notes.size() == 4);
}

TEST_CASE("hostile numbers and texts end in an error") {
  CHECK(errors("").size() == 1);
  CHECK(errors(" \r\n \n").size() == 1);
  CHECK(errors(std::string("0F0\0", 4)).size() == 1);
  CHECK(errors("99999999999999999999F0\n").size() == 1);
  CHECK(errors("0F99999999999999999999\n").size() == 1);
  CHECK(errors("65535F16777215\n").size() == 1);
  CHECK(errors("0" + std::string(400, '0') + "F0\n").size() == 1);
  CHECK(errors(std::string(100'000, '(')).size() == 1);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x\n";
  CHECK(errors(many).size() == Diagnostics::kMost);
  CHECK_FALSE(errors(std::string(20'000, '\n')).empty());
  CHECK_FALSE(errors("\r\r\r,").empty());
}

TEST_CASE("which files are CSV tables") {
  CHECK(looks_like_csv("a.csv", ""));
  CHECK(looks_like_csv("a.CSV", "schedule"));
  CHECK(looks_like_csv("<stdin>", "0F0,0B0"));
  CHECK(looks_like_csv("<stdin>", ",0F0"));
  CHECK_FALSE(looks_like_csv("a.sched", "0F0"));
  CHECK_FALSE(looks_like_csv("<stdin>", "# a schedule"));
  CHECK_FALSE(looks_like_csv("csv", ""));
}

TEST_CASE("random tables survive being written and read, as CSV and as .sched") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Schedule schedule = test::training(1 + seed % 4, 1 + seed % 3, 1 + seed % 5);
    const Table table = test::random_table(schedule, seed);
    const Result<std::string> csv = write_csv(table);
    REQUIRE(csv.ok());
    Read read = read_csv(csv.value());
    CHECK(read.sink.all().empty());
    REQUIRE(read.schedule);
    CHECK(write_csv(read.table).value() == csv.value());
    const Read again = read_sched(write_sched(read.sources, *read.schedule, read.table));
    CHECK(again.sink.all().empty());
    REQUIRE(again.schedule);
    CHECK(write_csv(again.table).value() == csv.value());
  }
}

TEST_CASE("a schedule written out keeps its costs, parameters, memory and expectations") {
  Read read = read_sched(
      "schedule s(P = 2, c = 1/3)\ndevices P\nstages P\nmicrobatches 2\nplace stage s on device P - 1 - s\n"
      "cost F(s, m) = 1 + s * c\nmemory weights(s) = s\n"
      "on device d { let s = P - 1 - d  repeat 2 { F(s, next) } repeat 2 { I(s, next) W(s, next) } }\n"
      "expect peak_activations(d) == 2 for d in devices\n");
  CHECK(read.sink.all().empty());
  REQUIRE(read.schedule);
  const SourceId costs = read.sources.add("--cost", "W=c,message=2");
  const std::string text = write_sched(read.sources, *read.schedule, read.table, costs);
  CHECK(text ==
        "schedule s(P = 2, c = 1 / 3)\n\ndevices P\nstages P\nmicrobatches 2\nplace stage s on device P - 1 - s\n\n"
        "cost F(s, m) = 1 + s * c\ncost W = c\ncost message = 2\nmemory weights(s) = s\n\n"
        "table {\n  0: F0 F1 I0 W0 I1 W1\n  1: F0 F1 I0 W0 I1 W1\n}\n\n"
        "expect peak_activations(d) == 2 for d in devices\n");
  const Read again = read_sched(text);
  CHECK(again.sink.all().empty());
  REQUIRE(again.schedule);
  CHECK(again.table.entries == read.table.entries);
  CHECK(again.schedule->costs.weights == read.schedule->costs.weights);
  CHECK(again.schedule->costs.duration[KindId(0)].values == read.schedule->costs.duration[KindId(0)].values);
}

TEST_CASE("an op that PyTorch does not have cannot be written as CSV") {
  Schedule schedule = test::training(1, 1, 1);
  OpKind kind = test::training_kind(Operation::Declared, 1, 1);
  kind.name = "R";
  REQUIRE(schedule.ops.add(std::move(kind)));
  const Table table = test::table_of(schedule, {{OpId(schedule.ops.size() - 1)}});
  const Result<std::string> written = write_csv(table);
  REQUIRE_FALSE(written.ok());
  CHECK(written.failure().message ==
        "PyTorch's tables have no op like `R(0, 0)` on device 0: they have F, I, W and B of a stage and a microbatch");
}

}  // namespace stave
