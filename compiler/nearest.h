// The nearest known name, for "did you mean".
#pragma once

#include <string_view>
#include <vector>

namespace stave {

/// The candidate with the fewest slips (a letter too many, too few, wrong, or two swapped) from `name`; of several the
/// first. Empty if the best is too far: more than a third of the letters, where one slip is always near for names of
/// three letters and more, and a letter alone is near only to itself in the other case.
/// Cost: O(letters of all candidates times those of `name`); names of more than 64 letters have no near one.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace stave
