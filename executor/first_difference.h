// What sets two runs apart that had to be alike: their texts, in lines, are compared where a checkpoint is read and where
// ranks come together.
#pragma once

#include <string>

namespace stave {

/// "it has 'seed 1', NAME 'seed 2'": of `there` and of `here`, which is called `name`, the first lines that differ.
std::string first_difference(const std::string& there, const std::string& here, const std::string& name);

}  // namespace stave
