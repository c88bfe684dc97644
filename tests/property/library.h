// The library's files, for tests that hold for each of them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace stave::test {

inline std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The files that describe training.
inline std::vector<std::filesystem::path> library() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = std::filesystem::path(STAVE_SOURCE_DIR) / "schedules";
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".sched" && read(entry.path()).find("use inference") == std::string::npos)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 5);
  return files;
}

}  // namespace stave::test
