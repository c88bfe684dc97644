#include "compiler/nearest.h"

#include <doctest/doctest.h>

#include <string>

using namespace stave;

TEST_CASE("the nearest name is the one with the fewest slips") {
  CHECK(nearest_name("devics", {"stages", "devices", "device"}) == "devices");
  CHECK(nearest_name("stagse", {"stage", "stages"}) == "stage");
  CHECK(nearest_name("makesapn", {"span", "makespan"}) == "makespan");
  CHECK(nearest_name("repeet", {"repeat", "require"}) == "repeat");
}

TEST_CASE("of equals the first; none if all are far") {
  CHECK(nearest_name("cast", {"cost", "last"}) == "cost");
  CHECK(nearest_name("cast", {"last", "cost"}) == "last");
  CHECK(nearest_name("banana", {"devices", "stages"}).empty());
  CHECK(nearest_name("F", {"B", "W"}).empty());
  CHECK(nearest_name("xy", {"xz", "x"}).empty());
  CHECK(nearest_name("", {"a"}).empty());
  CHECK(nearest_name("a", {}).empty());
}

TEST_CASE("the other case is half a slip") {
  CHECK(nearest_name("p", {"q", "P"}) == "P");
  CHECK(nearest_name("Warmup", {"warnup", "warmup"}) == "warmup");
}

TEST_CASE("very long names have no near one") {
  CHECK(nearest_name(std::string(1000, 'a'), {"aaa"}).empty());
  const std::string longer(1000, 'a');
  CHECK(nearest_name("aaaa", {longer}).empty());
}
