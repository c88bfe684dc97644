// Expansion: what an expanded schedule keeps of its file, so that `expect` lines can be tried, ops traced to the text
// that made them, and the parameters shown.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/arguments.h"
#include "compiler/code.h"
#include "compiler/world.h"

namespace stave {

struct ParameterValue {
  std::string name;
  /// "4", "7/2", "[3, 2]".
  std::string text;
};

struct Expansion {
  std::shared_ptr<const Code> code;
  std::vector<Argument> arguments;
  /// In the order of the text.
  std::vector<ParameterValue> parameters;
  World world;
};

}  // namespace stave
