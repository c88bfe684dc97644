// The functions that the schedule language has of its own: one table of their names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "compiler/code.h"

namespace stave {

struct Builtin {
  std::string_view name;
  TermKind term = TermKind::Len;
  std::uint8_t least = 1;
  /// 255: any number.
  std::uint8_t most = 1;
};

inline constexpr std::array<Builtin, 11> kBuiltins = {{
    {"abs", TermKind::Abs},
    {"ceil", TermKind::Ceil},
    {"device", TermKind::DeviceOf, 1, 2},
    {"floor", TermKind::Floor},
    {"len", TermKind::Len},
    {"max", TermKind::Max, 1, 255},
    {"min", TermKind::Min, 1, 255},
    {"reversed", TermKind::Reversed},
    {"slices", TermKind::SlicesOf},
    {"stages", TermKind::StagesOf},
    {"sum", TermKind::Sum, 1, 255},
}};

constexpr const Builtin* find_builtin(std::string_view name) {
  for (const Builtin& each : kBuiltins)
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace stave
