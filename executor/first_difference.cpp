#include "executor/first_difference.h"

#include <sstream>

namespace stave {

std::string first_difference(const std::string& there, const std::string& here, const std::string& name) {
  std::istringstream a(there);
  std::istringstream b(here);
  std::string mine;
  std::string other;
  while (true) {
    const bool has_other = static_cast<bool>(std::getline(a, other));
    const bool has_mine = static_cast<bool>(std::getline(b, mine));
    if (!has_other && !has_mine) return "it differs";
    if (has_other != has_mine || other != mine)
      return "it has '" + (has_other ? other : "") + "', " + name + " '" + (has_mine ? mine : "") + "'";
  }
}

}  // namespace stave
