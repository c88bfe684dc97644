#include "executor/physical_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace stave {

namespace {

// No more than `most`, by a file that holds a number, or the word "max".
std::uint64_t limited(std::uint64_t most, const std::string& path) {
  std::ifstream in(path);
  std::uint64_t limit = 0;
  return in >> limit && limit > 0 ? std::min(most, limit) : most;
}

}  // namespace

std::uint64_t usable_memory() {
  std::uint64_t result = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  const std::string root = "/sys/fs/cgroup";
  result = limited(limited(result, root + "/memory.max"), root + "/memory/memory.limit_in_bytes");
  // "0::/path" of the second version, "5:memory:/path" of the first.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::string path = line.substr(std::min(line.size(), line.rfind(':') + 1));
    if (line.starts_with("0::")) result = limited(result, root + path + "/memory.max");
    if (line.find(":memory:") != std::string::npos)
      result = limited(result, root + "/memory" + path + "/memory.limit_in_bytes");
  }
  return result;
}

}  // namespace stave
