// The comment lines of golden files.
#include "cli/golden_file.h"

#include <doctest/doctest.h>

namespace stave {
namespace {

constexpr std::string_view kText =
    "schedule toy\n"
    "devices 0\n"
    "stages 1\n"
    "\n"
    "# KIND: count\n"
    "# ABOUT: Counts are at least 1.\n"
    "# REPAIR 2: devices 1\n"
    "# REPAIR 2: # one is enough\n"
    "# REPAIR 3:\n"
    "# RUN: stave check %s\n"
    "# EXIT: 1\n"
    "#> out\n"
    "#!\n"
    "#!   err\n";

TEST_CASE("a golden file is taken apart") {
  const GoldenFile golden = read_golden(kText);
  CHECK(golden.body == "schedule toy\ndevices 0\nstages 1\n\n");
  CHECK(golden.run == std::vector<std::string>{"stave check %s"});
  CHECK(golden.exit == 1);
  CHECK(golden.kind == "count");
  CHECK(golden.about == std::vector<std::string>{"Counts are at least 1."});
  CHECK(golden.out == "out\n");
  CHECK(golden.err == "\n  err\n");
}

TEST_CASE("repairs replace, add and remove lines") {
  CHECK(repaired(read_golden(kText)) == "schedule toy\ndevices 1\n# one is enough\n\n");
}

TEST_CASE("output is replaced, and the rest kept") {
  const std::string renewed = with_output(kText, "new\n", "");
  CHECK(renewed.ends_with("# EXIT: 1\n#> new\n"));
  CHECK(read_golden(renewed).body == read_golden(kText).body);
  const GoldenFile golden = read_golden(kText);
  CHECK(with_output(kText, golden.out, golden.err) == kText);
}

}  // namespace
}  // namespace stave
