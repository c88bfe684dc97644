// Values of parameters from the command line: `P=8`, `length=[3, 2]`, `length=[[4], [3, 2]]`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/datum.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"
#include "core/result.h"

namespace stave {

struct Argument {
  std::string name;
  /// A number, or the elements of a list.
  Rational number;
  bool is_list = false;
  std::vector<Datum> items;
  /// The lists among the elements.
  std::vector<std::shared_ptr<const std::vector<Datum>>> rows;

  /// Valid as long as this argument.
  Datum value() const {
    return is_list ? Datum::written(items.data(), static_cast<std::int64_t>(items.size())) : Datum::number(number);
  }
};

/// `NAME=VALUE`, where the value is an expression without names. Errors: not of that form, or no number, list of numbers
/// or list of such lists.
Result<Argument> read_argument(std::string_view text);

/// `name` = `value`, for a case of a grid.
inline Argument make_argument(std::string name, Rational value) {
  Argument argument;
  argument.name = std::move(name);
  argument.number = value;
  return argument;
}

}  // namespace stave
