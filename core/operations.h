// The one table of the operations whose meaning stave knows.
// Parser, printer, costs, executor and pictures read it; what an op needs is declared in schedules/std/, not here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stave {

/// What an op does. The letters are PyTorch's; the zero-bubble papers call I `B`.
enum class Operation : std::uint8_t {
  Forward,
  InputGradient,
  WeightGradient,
  Backward,
  ReduceGradient,
  Optimizer,
  /// Activations that the forward has dropped are made again from its input.
  Recompute,
  /// Declared by a schedule; stave knows its dependencies and its cost, not what it computes.
  Declared,
};

/// In pictures; each renderer has its own shades, in this order.
enum class Colour : std::uint8_t { Blue, Cyan, Green, Teal, Purple, Orange, Yellow, Grey };
inline constexpr std::size_t kColours = 8;

struct OperationInfo {
  Operation operation = Operation::Declared;
  /// As schedules write it; empty for Declared.
  std::string_view letter;
  /// In words: "forward".
  std::string_view words;
  /// In PyTorch's compute-only tables; empty where they have none.
  std::string_view pytorch;
  /// The activations of a (stage, microbatch, slice) are held from the start of the op that takes them ...
  bool takes_activation = false;
  /// ... to the end of the op that gives them back.
  bool gives_activation = false;
  /// It works on those activations in between.
  bool uses_activation = false;
  Colour colour = Colour::Grey;
};

inline constexpr std::array<OperationInfo, 8> kOperations = {{
    {Operation::Forward, "F", "forward", "F", true, false, true, Colour::Blue},
    {Operation::InputGradient, "I", "input gradient", "I", false, false, true, Colour::Cyan},
    {Operation::WeightGradient, "W", "weight gradient", "W", false, true, true, Colour::Green},
    {Operation::Backward, "B", "backward", "B", false, true, true, Colour::Teal},
    {Operation::ReduceGradient, "G", "gradient reduction", "", false, false, false, Colour::Purple},
    {Operation::Optimizer, "O", "optimizer step", "", false, false, false, Colour::Orange},
    {Operation::Recompute, "R", "recomputation", "", false, false, true, Colour::Yellow},
    {Operation::Declared, "", "declared op", "", false, false, false, Colour::Grey},
}};

constexpr bool in_order_of_their_enum() {
  for (std::size_t i = 0; i < kOperations.size(); ++i)
    if (kOperations[i].operation != static_cast<Operation>(i)) return false;
  return true;
}
static_assert(in_order_of_their_enum(), "a row of kOperations stands in another place than its operation");

constexpr const OperationInfo& info(Operation operation) { return kOperations[static_cast<std::size_t>(operation)]; }

/// The operation a schedule's letter stands for; Declared if it is none of stave's own.
constexpr Operation operation_of(std::string_view letter) {
  for (const OperationInfo& each : kOperations)
    if (each.letter == letter) return each.operation;
  return Operation::Declared;
}

}  // namespace stave
