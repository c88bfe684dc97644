#include "compiler/source.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

using namespace stave;

TEST_CASE("lines and columns count from 1, columns in characters") {
  Sources sources;
  const SourceId id = sources.add("t", "ab\n\xC3\xA9x\r\n\nz");
  const auto place = [&](std::uint32_t offset) {
    const LineColumn where = sources.place(id, offset);
    return std::to_string(where.line) + ":" + std::to_string(where.column);
  };
  CHECK(place(0) == "1:1");
  CHECK(place(2) == "1:3");
  CHECK(place(3) == "2:1");
  CHECK(place(5) == "2:2");
  CHECK(place(8) == "3:1");
  CHECK(place(9) == "4:1");
  CHECK(place(10) == "4:2");
  CHECK(place(1000) == "4:2");
}

TEST_CASE("text of a span never leaves the source") {
  Sources sources;
  const SourceId id = sources.add("t", "abc");
  CHECK(sources.text({id, 1, 2}) == "b");
  CHECK(sources.text({id, 1, 99}) == "bc");
  CHECK(sources.text({id, 7, 99}).empty());
  CHECK(sources.text({id, 2, 1}).empty());
}

TEST_CASE("files are read whole, or a failure says why not") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("stave_source_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "a.sched").string();
  std::ofstream(path, std::ios::binary) << std::string("a\0b\n", 4);
  Sources sources;
  Result<SourceId> read = read_source(sources, path);
  REQUIRE(read);
  CHECK(sources[*read].text == std::string("a\0b\n", 4));
  CHECK(sources[*read].name == path);
  const Result<SourceId> missing = read_source(sources, path + ".not");
  REQUIRE(!missing);
  CHECK(missing.failure().message == "cannot read `" + path + ".not`: No such file or directory");
  const Result<SourceId> directory = read_source(sources, folder.string());
  REQUIRE(!directory);
  CHECK(directory.failure().message == "cannot read `" + folder.string() + "`: it is a directory");
  std::filesystem::remove_all(folder);
}
