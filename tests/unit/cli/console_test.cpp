// Files are written whole or not at all, and never over an input.
#include "cli/console.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace stave {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "stave-console-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string operator/(const char* name) const { return (path / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {})); }
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("an output is written, and written again") {
  const Folder folder;
  REQUIRE(write_output(folder / "out", "one", {}));
  REQUIRE(write_output(folder / "out", "two", {}));
  CHECK(text_of(folder / "out") == "two");
  CHECK(folder.files() == 1);
}

TEST_CASE("an output that is an input is refused, by whatever name") {
  const Folder folder;
  std::ofstream(folder / "in") << "kept";
  fs::create_symlink(folder / "in", folder / "link");
  const Result<void> written = write_output(folder / "link", "lost", {folder / "in"});
  REQUIRE(!written);
  CHECK(written.failure().message == "`" + (folder / "link") + "` is an input; write the output elsewhere");
  CHECK(text_of(folder / "in") == "kept");
}

TEST_CASE("a folder and a place that does not exist are refused, and nothing is left behind") {
  const Folder folder;
  const Result<void> into_folder = write_output(folder.path.string(), "x", {});
  REQUIRE(!into_folder);
  CHECK(into_folder.failure().message == "cannot write `" + folder.path.string() + "`: it is a folder");
  CHECK(!write_output(folder / "no/where", "x", {}));
  CHECK(folder.files() == 0);
}

TEST_CASE("a full disk is an error") {
  if (!fs::exists("/dev/full")) return;
  const Result<void> written = write_output("/dev/full", "x", {});
  REQUIRE(!written);
  CHECK(written.failure().message.find("No space") != std::string::npos);
}

TEST_CASE("a link stays a link") {
  const Folder folder;
  std::ofstream(folder / "target") << "old";
  fs::create_symlink("target", folder / "link");
  REQUIRE(write_output(folder / "link", "new", {}));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(text_of(folder / "target") == "new");
}

}  // namespace
}  // namespace stave
