// Runs one golden file (cli/golden_file.h) and compares exit status, output and errors, byte for byte.
//
//   golden STAVE FILE [--update]
//
// The script runs in the folder of the file, with the program called `stave` first in its PATH. With --update the
// expected output and status in the file are replaced by what came. A file with REPAIR lines is also mended and must
// then pass.
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "cli/golden_file.h"

namespace stave {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_all(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string replace_all(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

struct Outcome {
  int exit = 0;
  std::string out;
  std::string err;
};

class Runner {
 public:
  Runner(const fs::path& stave, const fs::path& file) : stave_(fs::absolute(stave)), file_(fs::absolute(file)) {
    std::string name = (fs::temp_directory_path() / "stave-golden-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    fs::create_directory(folder_ / "t");
  }
  ~Runner() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Outcome run(const GoldenFile& golden, const std::string& subject) {
    std::string script;
    for (const std::string& line : golden.run) script += line + "\n";
    script = replace_all(replace_all(script, "%s", subject), "%t", (folder_ / "t").string());
    write_all(folder_ / "script", script);
    const std::string command = "cd '" + file_.parent_path().string() + "' && PATH='" +
                                stave_.parent_path().string() + "':\"$PATH\" COLUMNS=100 NO_COLOR= sh '" +
                                (folder_ / "script").string() + "' >'" + (folder_ / "out").string() + "' 2>'" +
                                (folder_ / "err").string() + "' </dev/null";
    const int status = std::system(command.c_str());
    Outcome outcome;
    outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = replace_all(read_all(folder_ / "out"), (folder_ / "t").string(), "%t");
    outcome.err = replace_all(read_all(folder_ / "err"), (folder_ / "t").string(), "%t");
    return outcome;
  }

  fs::path scratch(const std::string& name) const { return folder_ / name; }

 private:
  fs::path stave_;
  fs::path file_;
  fs::path folder_;
};

/// Prints both texts if they differ; true if they are the same.
bool same(const std::string& what, const std::string& expected, const std::string& found) {
  if (expected == found) return true;
  std::cout << "--- " << what << " expected\n" << expected << "+++ " << what << " found\n" << found << "---\n";
  return false;
}

/// The text with `# EXIT:` saying `exit`, after the last RUN line.
std::string with_exit(const std::string& text, int exit) {
  std::string result;
  std::istringstream lines(text);
  std::size_t after_run = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# EXIT:")) continue;
    result += line + "\n";
    if (line.starts_with("# RUN:")) after_run = result.size();
  }
  if (exit != 0) result.insert(after_run, "# EXIT: " + std::to_string(exit) + "\n");
  return result;
}

int main_of(const fs::path& stave, const fs::path& file, bool update) {
  const std::string text = read_all(file);
  GoldenFile golden = read_golden(text);
  if (golden.run.empty()) {
    std::cout << file.string() << ": has no `# RUN:` line\n";
    return 1;
  }
  Runner runner(stave, file);
  const Outcome found = runner.run(golden, file.filename().string());
  if (update) {
    const std::string renewed = with_output(with_exit(text, found.exit), found.out, found.err);
    if (renewed != text) write_all(file, renewed);
    golden = read_golden(renewed);
  }
  bool good = same("status", std::to_string(golden.exit), std::to_string(found.exit));
  good = same("output", golden.out, found.out) && good;
  good = same("errors", golden.err, found.err) && good;

  if (file.filename().string().starts_with("fail_") != (golden.exit != 0)) {
    std::cout << "the name must begin with `fail_` exactly when a status other than 0 is expected\n";
    good = false;
  }
  if (!golden.kind.empty()) {
    if (!text.starts_with(golden.body.substr(0, golden.body.find_last_not_of('\n') + 1))) {
      std::cout << "in a file with a KIND everything must stand before the comment lines, or line numbers would lie\n";
      good = false;
    }
    if (golden.repairs.empty() && golden.about.empty()) {
      std::cout << "a file with a KIND needs REPAIR lines, or ABOUT lines that say what to do\n";
      good = false;
    }
    if ((found.out + found.err).find("[" + golden.kind + "]") == std::string::npos) {
      std::cout << "no diagnostic of the kind `" << golden.kind << "` came\n";
      good = false;
    }
    if (golden.repairs.empty()) return good ? 0 : 1;
    const fs::path mended = runner.scratch(file.filename().string());
    write_all(mended, repaired(golden));
    const Outcome outcome = runner.run(golden, mended.string());
    if (outcome.exit != 0) {
      std::cout << "the repaired file fails too:\n" << outcome.out << outcome.err;
      good = false;
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stave

int main(int count, char** arguments) {
  if (count < 3) {
    std::cout << "usage: golden STAVE FILE [--update]\n";
    return 2;
  }
  return stave::main_of(arguments[1], arguments[2], count > 3 && std::string(arguments[3]) == "--update");
}
