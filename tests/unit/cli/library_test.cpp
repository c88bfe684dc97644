// What the header of a schedule file says, and which file a word of the command line means.
#include "cli/library.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace stave {
namespace {

namespace fs = std::filesystem;

/// A library of three files, chosen by the environment for as long as this lives.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "stave-library-XXXXXX").string();
    path_ = mkdtemp(name.data());
    for (const char* file : {"zb_v.sched", "gpipe.sched", "README.md", ".hidden.sched"}) std::ofstream(path_ / file) << "#\n";
    setenv("STAVE_SCHEDULES", path_.c_str(), 1);
  }
  ~Folder() {
    unsetenv("STAVE_SCHEDULES");
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string of(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

TEST_CASE("a header is its first sentence and its citation") {
  const Header header = read_header(
      "\n# ZB-V: two chunks in a V,\n#   split backward. The last stage\n# sits at home.\n"
      "# Source: Qi et al., NeurIPS 2024,\n# arXiv:2405.15362; the rule is ours.\n#\n# P  devices\nschedule zb_v\n");
  CHECK(header.about == "ZB-V: two chunks in a V, split backward.");
  CHECK(header.source == "Qi et al., NeurIPS 2024, arXiv:2405.15362");
}

TEST_CASE("a header may lack anything") {
  for (const char* text : {"", "\n", "#", "# \n#\n", "schedule a\n# Not the header.\n", "schedule a\n# Source: nowhere"}) {
    CHECK(read_header(text).about.empty());
    CHECK(read_header(text).source.empty());
  }
  CHECK(read_header("# Source: A.\n").about.empty());
  CHECK(read_header("# Source: A.\n").source == "A");
  CHECK(read_header("# About").about == "About");
  CHECK(read_header("# 1.5 of it. More.").about == "1.5 of it.");
}

TEST_CASE("lines of language are neither blank nor a comment") {
  CHECK(lines_of_language("") == 0);
  CHECK(lines_of_language("# a\n\n  # b\nschedule a  # c\r\n\t\r\ndevices 1") == 2);
}

TEST_CASE("a bare name is looked up in the library, a path is not") {
  const Folder folder;
  CHECK(find_schedule("zb_v").value() == folder.of("zb_v.sched"));
  for (const char* path : {"-", "zb_v.sched", "./zb_v", "/zb_v", "x.csv"}) CHECK(find_schedule(path).value() == path);
  CHECK(find_schedule("zbv").failure().message ==
        "`zbv` is no file, and no schedule of the library is called so; did you mean `zb_v`?\n"
        "stave list prints the library");
  CHECK(find_schedule("README").failure().message ==
        "`README` is no file, and no schedule of the library is called so\nstave list prints the library");
}

TEST_CASE("the library is what its folder holds, by name") {
  const Folder folder;
  const Result<std::vector<LibraryFile>> files = read_library();
  REQUIRE(files);
  REQUIRE(files.value().size() == 2);
  CHECK(files.value()[0].name == "gpipe");
  CHECK(files.value()[1].path == folder.of("zb_v.sched"));
}

TEST_CASE("a library that cannot be read is said") {
  setenv("STAVE_SCHEDULES", "/nowhere/at/all", 1);
  CHECK(read_library().failure().message == "cannot read the library `/nowhere/at/all`: No such file or directory");
  CHECK(find_schedule("gpipe").failure().message ==
        "cannot read the library `/nowhere/at/all`: No such file or directory");
  unsetenv("STAVE_SCHEDULES");
}

}  // namespace
}  // namespace stave
