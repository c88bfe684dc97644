// How a command line names schedules and their parameters.
#include "cli/arguments.h"

#include <doctest/doctest.h>

#include <utility>

namespace stave {
namespace {

std::string failure_of(std::vector<std::string> words, std::vector<std::string> definitions = {}, bool several = false) {
  ScheduleOptions options;
  options.words = std::move(words);
  options.definitions = std::move(definitions);
  const Result<std::vector<ScheduleArgument>> result = schedule_arguments(options, several);
  return result ? "" : result.failure().message;
}

TEST_CASE("parameters belong to the file before them, and those of -D to all") {
  ScheduleOptions options;
  options.words = {"a.sched", "V=8", "b.sched", "M=[3,2]"};
  options.definitions = {"P=2"};
  const Result<std::vector<ScheduleArgument>> result = schedule_arguments(options, true);
  REQUIRE(result);
  const std::vector<ScheduleArgument>& files = result.value();
  REQUIRE(files.size() == 2);
  CHECK(files[0].file == "a.sched");
  REQUIRE(files[0].parameters.size() == 2);
  CHECK(files[0].parameters[1].value == "8");
  REQUIRE(files[1].parameters.size() == 2);
  CHECK(files[1].parameters[0].value == "2");
  CHECK(files[1].parameters[1].name == "M");
  CHECK(files[1].parameters[1].value == "[3,2]");
}

TEST_CASE("what cannot be meant is refused") {
  CHECK(failure_of({"P=2", "a.sched"}) == "`P=2` comes before any schedule file");
  CHECK(failure_of({"P=2"}, {}, true) == "`P=2` comes before any schedule file; `-D P=2` is for all of them");
  CHECK(failure_of({"a.sched", "b.sched"}) == "one schedule file is taken, and `b.sched` is a second one");
  CHECK(failure_of({"a.sched", "P=2", "P=3"}) == "parameter `P` is given twice");
  CHECK(failure_of({"a.sched", "P=2"}, {"P=3"}) == "parameter `P` is given twice");
  CHECK(failure_of({"a.sched"}, {"P=2", "P=3"}) == "parameter `P` is given twice");
  CHECK(failure_of({"a.sched", "P="}) == "parameter `P` has no value");
  CHECK(failure_of({"a.sched"}, {"P"}) == "`P` is no NAME=VALUE");
  CHECK(failure_of({"-", "-"}, {}, true) == "standard input can be read once only");
}

TEST_CASE("a file may have an equals sign behind a slash") {
  CHECK(failure_of({"./a=b.sched"}).empty());
}

}  // namespace
}  // namespace stave
