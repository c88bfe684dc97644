// Code: a schedule file, and the files it uses, with every name resolved: variables are slots, functions and ops numbers.
// Made once by check.h, read any number of times by `expand` of compile.h (one time for each set of parameters).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ast.h"
#include "compiler/metrics.h"
#include "compiler/rational.h"
#include "compiler/schedule.h"

namespace stave {

/// Most kinds of op, and most names of messages.
inline constexpr std::size_t kMaxKinds = 200;
inline constexpr std::size_t kMaxPayloads = 200;

/// An expression with its names resolved.
using TermId = Id<struct TermTag>;

enum class TermKind : std::uint8_t {
  Number,       // value
  Slot,         // slots[target]
  Let,          // lets[target]
  Setting,      // the list 0 .. settings[target]
  Negate,       // operand 0
  Not,          // operand 0
  Add,          // operands 0, 1; so to Or
  Subtract,
  Multiply,
  Divide,
  Div,
  Mod,
  Equal,
  Unequal,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  And,
  Or,
  Conditional,  // operand 0 if operand 1 else operand 2
  Call,         // functions[target] of the operands
  StagesOf,     // the stages on device operand 0
  SlicesOf,     // the slices of microbatch operand 0
  DeviceOf,     // the device of stage operand 0, for microbatch operand 1 if there is one
  Reversed,
  Len,
  Sum,
  Min,
  Max,
  Abs,
  Ceil,
  Floor,
  Element,  // operand 0 [operand 1]
  List,     // operands, or the elements of one Each
  Range,    // operand 0 .. operand 1
  Each,     // operand 0 for slots[target] in operand 1
  // An op and its indices, or its letter; never a value.
  Op,    // ops[target] (operands)
  Pair,  // operands 0 and 1, ops that overlap
  Next,  // as an index
  Star,  // as an index
  // In cost lines and `expect`.
  Letter,   // the one cost of ops[target]
  CostOf,   // the cost of ops[target] (operands)
  PairCost, // the one cost of the pair of operands 0 and 1, both OpName
  Message,  // the cost of a message; target is a payload, or kNone for the one cost of all; operands: its two devices
  Metric,   // Metric(target) of the operands
  OpName,   // ops[target], as an argument of `count`
  Cause,    // IdleCause(target), as an argument of `idle`
};

struct Term {
  TermKind kind = TermKind::Number;
  std::uint32_t target = 0;
  /// Operands: `count` of Code::operands from `first`.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Rational value;
};

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;

enum class SettingKind : std::uint8_t { Devices, Stages, Microbatches, Slices };
inline constexpr std::array<std::string_view, 4> kSettings = {"devices", "stages", "microbatches", "slices"};

struct ParameterCode {
  std::string name;
  Span span;
  std::uint32_t slot = kNoSlot;
  TermId value;
};

struct LetCode {
  std::string name;
  Span span;
  TermId value;
};

struct FunctionCode {
  std::string name;
  Span span;
  std::vector<std::uint32_t> slots;
  TermId value;
  /// Its value is an op, not a number or a list.
  bool gives_op = false;
  /// Declared in a body: in view there alone.
  bool local = false;
};

struct SettingCode {
  Span span;
  TermId value;
};

struct PlaceCode {
  std::uint32_t slot = kNoSlot;
  /// Of the microbatch; kNoSlot if the place does not depend on it.
  std::uint32_t microbatch_slot = kNoSlot;
  TermId device;
  Span span;
};

struct RouteCode {
  std::uint32_t slot = kNoSlot;
  TermId stages;
  Span span;
};

struct NeedCode {
  /// Empty for `after`.
  std::string message;
  std::uint32_t op = 0;
  /// One for each index of that op; not valid for a slice that is left out.
  std::vector<TermId> indices;
  /// The slots of the indices of the op that needs; kNoSlot for a slice that is left out.
  std::vector<std::uint32_t> slots;
  Span span;
};

struct IndexCode {
  std::string name;
  std::uint32_t slot = kNoSlot;
  IndexRole role = IndexRole::Other;
  TermId list;
  /// The list depends on the indices before.
  bool ragged = false;
};

struct OpCode {
  std::string name;
  Span name_span;
  std::vector<IndexCode> indices;
  std::vector<std::uint32_t> parts;
  bool optional = false;
  std::string stream;
  Span stream_span;
  /// `on device e`, in terms of the indices.
  TermId device;
  std::vector<NeedCode> needs;
  TermId condition;
};

struct StatementCode;
using BodyCode = std::vector<StatementCode>;

struct BranchCode {
  /// Not valid for `else`.
  TermId condition;
  BodyCode body;
};

struct StatementCode {
  StatementKind kind = StatementKind::Op;
  Span span;
  TermId expr;
  TermId at;
  /// For: the variable; Let: the value.
  std::uint32_t slot = kNoSlot;
  BodyCode body;
  std::vector<BranchCode> branches;
};

/// A part of an `on device`, in the order of the text.
struct ItemCode {
  enum class Kind : std::uint8_t { Statement, Block, Activations, Memory, Versions };
  Kind kind = Kind::Statement;
  OrderKind order = OrderKind::List;
  /// The statement, or those of the block.
  BodyCode body;
  /// Of a limit.
  TermId value;
  Span span;
};

struct OnDeviceCode {
  Span span;
  std::uint32_t slot = kNoSlot;
  /// A list if there is a slot, else the device; not valid for all devices.
  TermId devices;
  std::vector<ItemCode> items;
};

struct ValueCode {
  enum class Target : std::uint8_t { Op, Pair, Setup, AllMessages, Message, Weights };
  Target target = Target::Op;
  std::uint32_t op = 0;
  /// Pair: the other op. Setup: the op before.
  std::uint32_t other = 0;
  std::string message;
  /// One for each index of the op, of the weights (a stage), or of a message (its two devices); empty in the form without
  /// indices.
  std::vector<std::uint32_t> slots;
  /// Whether the value depends on that index.
  std::vector<bool> used;
  /// Pair, Setup: those of the other op.
  std::vector<std::uint32_t> other_slots;
  TermId value;
  Span target_span;
};

struct RequireCode {
  TermId condition;
  std::string text;
};

struct ExpectCode {
  Span span;
  TermId claim;
  TermId condition;
  std::uint32_t slot = kNoSlot;
  std::string variable;
  TermId list;
};

/// A source that a `use` brings in, and that `use`.
struct UseCode {
  SourceId source;
  Span use;
  bool is_library = false;
};

struct Code {
  SourceId source;
  /// Without a library that no `use` names.
  std::vector<UseCode> uses;
  std::string name;
  Span name_span;

  IdVector<TermId, Term> terms;
  IdVector<TermId, Span> spans;
  std::vector<TermId> operands;
  /// Names of the variables, by slot. No function calls itself, so every variable has a slot of its own.
  std::vector<std::string> slots;

  std::vector<ParameterCode> parameters;
  std::vector<LetCode> lets;
  std::vector<FunctionCode> functions;
  std::array<std::optional<SettingCode>, 4> settings;
  std::optional<PlaceCode> place;
  std::optional<RouteCode> route;
  std::vector<OpCode> ops;
  /// Names of messages; the first is empty.
  std::vector<std::string> payloads = {""};
  std::vector<OnDeviceCode> devices;
  std::vector<ValueCode> costs;
  /// Of `costs`, how many are the file's own; the rest are a command line's.
  std::size_t own_costs = SIZE_MAX;
  std::vector<ValueCode> memory;
  std::vector<ValueCode> freezes;
  std::vector<RequireCode> requires_;
  std::vector<ExpectCode> expects;
  /// With the number in `ops` of each of its letters, and the ops of its calls.
  std::shared_ptr<const TableDecl> table;
  std::vector<std::uint32_t> table_letters;
  std::vector<TermId> table_calls;

  const Term& operator[](TermId id) const { return terms[id]; }
  TermId operand(const Term& term, std::uint32_t i) const { return operands[term.first + i]; }
};

}  // namespace stave
