// The Program's file: what is written is read again, and what is no such file is refused with its line.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "core/program_file.h"

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "false: %s\n", what.c_str());
  ++failures;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void refuse(const std::string& text, const std::string& due) {
  const stave::Result<stave::Program> program = stave::read_program(text);
  expect(!program, "a file that is wrong was read; due is: " + due);
  if (!program) expect(program.failure().message == due, "'" + program.failure().message + "', but due is: " + due);
}

}  // namespace

int main(int, char** argv) {
  std::string any;
  int files = 0;
  for (const auto& each : std::filesystem::directory_iterator(argv[1])) {
    if (each.path().extension() != ".program") continue;
    ++files;
    const std::string text = read(each.path());
    const stave::Result<stave::Program> program = stave::read_program(text);
    expect(program.ok(), each.path().string() + " was not read: " + (program ? "" : program.failure().message));
    if (!program) continue;
    expect(stave::write_program(program.value()) == text, each.path().string() + " is written as it was read");
    if (each.path().stem() == "zb_h1") any = text;
  }
  expect(files >= 6, "there are program files");
  expect(stave::hash_of("") == 0xcbf29ce484222325u && stave::hash_of("a") == 0xaf63dc4c8601ec8cu, "FNV-1a of '' and 'a'");

  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = any;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  refuse("", "this is no program file: it does not begin with stave-program");
  refuse("devices 4", "this is no program file: it does not begin with stave-program");
  refuse(with("stave-program 1", "stave-program 2"), "line 1: the file has version 2; this program reads version 1");
  refuse(with("entries 96", "entries 4000000000"), "line 11: the file is too short for a count of 4000000000");
  refuse(with("entries 96\n0 ", "entries 96\n300 "), "line 12: no kind has an op 300");
  refuse(with("entries 96\n0 ", "entries 96\n-1 "), "line 12: '-1' stands where a number up to 4294967294 is due");
  refuse(with("devices 5", "divices 5"), "line 18: 'divices' stands where 'devices' is due");
  refuse(with(" m microbatch 8", " m month 8"), "line 5: an index has no role 'month'");
  refuse(with("parts 2 1 2", "parts 2 1 9"), "line 8: a fused op has a part that is not declared before it");
  refuse(any + "1", "line " + std::to_string(std::count(any.begin(), any.end(), '\n')) +
                        ": something stands after the end");

  // Cut short, or with a byte changed, it is refused or is another program; nothing else happens.
  std::mt19937 random(1);
  for (std::size_t i = 0; i < 2000; ++i) {
    std::string text = any;
    if (i % 2 == 0) text.resize(random() % text.size());
    else text[random() % text.size()] = static_cast<char>(random() % 256);
    const stave::Result<stave::Program> program = stave::read_program(text);
    if (i % 2 == 0 && text.size() + 8 < any.size()) expect(!program, "a file that is cut short was read");
  }
  if (failures == 0) std::printf("%d program files\n", files);
  return failures == 0 ? 0 : 1;
}
