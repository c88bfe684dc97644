// Runs what a page of the documentation shows, and compares.
//
//   docs STAVE PAGE.md [--update]
//
// A fenced block ```console holds commands, each after "$ ", and below each what it prints (standard output and errors).
// They run in a shell, one block after the other, in a copy of the folder of README.md, in which ./stave is the program.
// A fenced block ```sched is a whole schedule file, which `stave check` must pass.
// In a block ```console varies, numbers and the lengths of spaces and bars may differ: times are never the same twice.
// With --update the page's text is replaced by what came.
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_digit(const std::string& text, std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; }

/// The text with every number, its sign too, as `#`, and every stretch of blanks as one: what may differ is taken out.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (is_digit(text, i)) {
      while (is_digit(text, i) || ((text[i] == '.' || text[i] == ',') && is_digit(text, i + 1))) ++i;
      if (!result.empty() && (result.back() == '+' || result.back() == '-')) result.pop_back();
      result += '#';
    } else if (text[i] == ' ' || text[i] == '\t') {
      if (result.empty() || result.back() != ' ') result += ' ';
      ++i;
    } else {
      result += text[i++];
    }
  }
  return result;
}

class Page {
 public:
  Page(const fs::path& stave, const fs::path& root) : root_(root) {
    std::string name = (fs::temp_directory_path() / "stave-docs-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
      const std::string file = entry.path().filename().string();
      if (file == "build" || file == ".git" || file == "stave") continue;
      fs::copy(entry.path(), folder_ / file, fs::copy_options::recursive);
    }
    fs::create_symlink(fs::absolute(stave), folder_ / "stave");
  }
  ~Page() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string run(const std::string& command) const {
    std::ofstream(folder_ / ".command") << command << "\n";
    const std::string line = "cd '" + folder_.string() +
                             "' && LC_ALL=C.UTF-8 COLUMNS=100 NO_COLOR=1 PATH=\"$PWD:$PATH\" sh .command >.out 2>&1 </dev/null";
    static_cast<void>(!std::system(line.c_str()));
    return read_all(folder_ / ".out");
  }

 private:
  fs::path root_;
  fs::path folder_;
};

/// A command with the lines that continue it (`\` at the end).
struct Shown {
  std::string command;
  std::string output;
};

int check(const fs::path& stave, const fs::path& page, bool update) {
  fs::path root = fs::absolute(page).parent_path();
  while (!fs::exists(root / "README.md")) root = root.parent_path();
  const Page runner(stave, root);
  std::istringstream lines(read_all(page));
  std::string renewed;
  int commands = 0, files = 0, wrong = 0;
  for (std::string line; std::getline(lines, line);) {
    renewed += line + "\n";
    if (line == "```sched") {
      std::string file;
      for (; std::getline(lines, line) && line != "```"; renewed += line + "\n") file += line + "\n";
      renewed += "```\n";
      ++files;
      const std::string found = runner.run("./stave check - <<'END OF FILE' || echo FAILED\n" + file + "END OF FILE");
      if (!found.ends_with("FAILED\n")) continue;
      ++wrong;
      std::cout << file << "--- does not pass\n" << found << "---\n";
      continue;
    }
    if (!line.starts_with("```console")) continue;
    const bool varies = line == "```console varies";
    std::vector<Shown> block;
    for (bool in_command = false; std::getline(lines, line) && line != "```";) {
      if (line.starts_with("$ ") || in_command) {
        if (!in_command) block.emplace_back();
        block.back().command += line + "\n";
        in_command = line.ends_with("\\");
      } else if (!block.empty()) {
        block.back().output += line + "\n";
      }
    }
    for (const Shown& shown : block) {
      ++commands;
      const std::string found = runner.run(shown.command.substr(2));
      const bool same = varies ? without_numbers(found) == without_numbers(shown.output) : found == shown.output;
      renewed += shown.command + (same ? shown.output : found);
      if (same) continue;
      ++wrong;
      if (!update) std::cout << shown.command << "--- shown\n" << shown.output << "+++ found\n" << found << "---\n";
    }
    renewed += "```\n";
  }
  if (update) std::ofstream(page, std::ios::binary | std::ios::trunc) << renewed;
  std::cout << commands << " commands, " << files << " files, " << wrong << (update ? " renewed\n" : " differ\n");
  return wrong > 0 && !update ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cout << "usage: docs STAVE PAGE.md [--update]\n";
    return 2;
  }
  return check(arguments[1], arguments[2], count > 3 && std::string(arguments[3]) == "--update");
}
