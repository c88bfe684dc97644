// Ast: a schedule file as it was written, one node for each construct of the grammar, each with its place.
// Names are plain text here; what they mean is decided by check.h, what they amount to by compile.h's `expand`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/rational.h"
#include "compiler/source.h"
#include "core/ids.h"

namespace stave {

/// An expression of an Ast.
using ExprId = Id<struct ExprTag>;

struct Identifier {
  std::string name;
  Span span;
};

enum class ExprKind : std::uint8_t {
  Number,       // value
  Name,         // name
  Next,         // next
  Star,         // *
  Negate,       // operands[0]
  Not,          // operands[0]
  Binary,       // operands[0] operator operands[1]
  Conditional,  // operands[0] if operands[1] else operands[2]
  Call,         // name(operands...): a function, a metric or an op
  Element,      // operands[0][operands[1]]
  List,         // [operands...]
  Range,        // operands[0] .. operands[1]
  Each,         // operands[0] for name in operands[1]: a list in brackets, or the argument of sum, min, max
  With,         // operands[0] with operands[1]: an overlapped pair
};

enum class Operator : std::uint8_t { Add, Subtract, Multiply, Divide, Div, Mod, Equal, Unequal, Less, LessEqual, Greater,
                                     GreaterEqual, And, Or };

struct Expr {
  ExprKind kind = ExprKind::Number;
  Operator op = Operator::Add;
  Span span;
  Rational value;
  /// Name, Call: the name; Each: the variable.
  Identifier name;
  std::vector<ExprId> operands;
};

struct Statement;
using Body = std::vector<Statement>;

/// One branch of an `if`; without a condition it is the `else`.
struct Branch {
  ExprId condition;
  Body body;
};

struct LetDecl {
  Identifier name;
  /// Parameters of a function; `is_function` tells `let f() = 1` from `let f = 1`.
  bool is_function = false;
  std::vector<Identifier> parameters;
  ExprId value;
  Span span;
};

enum class StatementKind : std::uint8_t { Op, Repeat, For, If, Let };

/// A statement of an `on device`, an `any` or a `fill`.
struct Statement {
  StatementKind kind = StatementKind::Op;
  Span span;
  /// Op: the call `F(d, next)`; an overlapped pair is a With expression. Repeat: the count. For: the list.
  ExprId expr;
  /// Op: the slot of `at e`, if there is one.
  ExprId at;
  /// For: the variable.
  Identifier variable;
  /// Repeat, For.
  Body body;
  /// If: its branches in order, the `else` last.
  std::vector<Branch> branches;
  std::optional<LetDecl> let;
};

enum class BlockKind : std::uint8_t { Any, Fill };

/// `any { }` or `fill { }` inside an `on device`.
struct BlockDecl {
  BlockKind kind = BlockKind::Any;
  Body body;
  Span span;
};

/// `limit activations <= e`, `limit memory <= e`, `limit versions <= e`.
struct LimitDecl {
  /// "activations", "memory" or "versions", or what was written instead.
  Identifier what;
  ExprId value;
  Span span;
};

/// `on device d`, `on device d in list`, `on device e`.
struct OnDevice {
  Span span;
  /// `d`: a new name; empty in the form `on device e`.
  Identifier variable;
  /// `d in list`: the list; `on device e`: the device; not valid for plain `on device d`.
  ExprId devices;
  /// The plain statements, one list, asked before the other blocks.
  Body list;
  std::vector<BlockDecl> blocks;
  std::vector<LimitDecl> limits;
};

struct Parameter {
  Identifier name;
  ExprId value;
  Span span;
};

/// `devices e`, `stages e`, `microbatches e`, `slices e`.
struct Setting {
  Identifier name;
  ExprId value;
  Span span;
};

/// `place stage s of microbatch m on device e`; `microbatch` is empty where it does not matter.
struct Place {
  Identifier stage;
  Identifier microbatch;
  ExprId device;
  Span span;
};

/// `route microbatch m = list`.
struct Route {
  Identifier microbatch;
  ExprId stages;
  Span span;
};

/// `receives x from F(...)`, or one target of an `after`: then `message` is empty.
struct Need {
  Identifier message;
  /// A Call expression whose operands may be Star or Range.
  ExprId op;
  Span span;
};

struct OpParameter {
  Identifier name;
  ExprId list;
};

/// `op F(s in stages, ...) = parts  optional  on stream x  on device e  receives ... after ...  if e`.
struct OpDecl {
  Identifier name;
  std::vector<OpParameter> parameters;
  /// Call expressions of a fused op.
  std::vector<ExprId> parts;
  bool optional = false;
  Identifier stream;
  ExprId device;
  std::vector<Need> needs;
  ExprId condition;
  Span span;
};

/// `I(s, m) after R(s, m)`: needs added to an op declared elsewhere.
struct AddedNeed {
  /// A Call expression whose operands are new names.
  ExprId op;
  std::vector<Need> needs;
  Span span;
};

/// One assignment of a `cost`, `memory` or `freeze` line.
struct ValueLine {
  /// A Name (`F`, `message`, `weights`), a Call with new names (`F(s, m)`, `message(a, b)`), or a With (`F with B`).
  ExprId target;
  /// `cost F after B`: the op before; not valid otherwise.
  ExprId after;
  ExprId value;
  /// `freeze W <= e` instead of `=`.
  bool at_most = false;
  Span span;
};

struct Require {
  ExprId condition;
  /// The text an author gave to it; empty without one.
  std::string text;
  Span span;
};

struct Expect {
  ExprId claim;
  /// `if e`; not valid without.
  ExprId condition;
  /// `for d in list`; empty without.
  Identifier variable;
  ExprId list;
  Span span;
};

/// `use training`, `use "file.sched"`.
struct Use {
  std::string name;
  bool is_file = false;
  Span span;
};

/// One cell of a `table`: an op, or two that overlap. Idle slots are not kept.
struct Cell {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint8_t kNoLetter = UINT8_MAX;

  /// Place of the cell in its source; its length is at most 255 bytes.
  std::uint32_t begin = 0;
  std::uint8_t length = 0;
  /// Index into TableDecl::letters.
  std::uint8_t letter = 0;
  /// The second op of `0F7+3B5` follows as a cell of its own, which has this set.
  bool overlaps_previous = false;
  /// As written; kNone if left out.
  std::uint32_t stage = kNone;
  std::uint32_t microbatch = kNone;
  /// Written `Decode(0, 1, 2)`: index into TableDecl::calls; then letter, stage and microbatch are not used.
  std::uint32_t call = kNone;
};

struct TableRow {
  /// The device before the colon.
  std::uint32_t device = 0;
  Span device_span;
  /// Cells first .. last - 1 of TableDecl::cells.
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct TableDecl {
  SourceId source;
  Span span;
  std::vector<std::string> letters;
  std::vector<ExprId> calls;
  std::vector<TableRow> rows;
  std::vector<Cell> cells;
};

/// One file. Every vector is in the order of the text.
struct Ast {
  SourceId source;
  Identifier name;
  std::vector<Parameter> parameters;
  std::vector<Use> uses;
  std::vector<Setting> settings;
  std::vector<LetDecl> lets;
  std::vector<Place> places;
  std::vector<Route> routes;
  std::vector<OpDecl> ops;
  std::vector<AddedNeed> added_needs;
  std::vector<OnDevice> devices;
  std::vector<ValueLine> costs;
  std::vector<ValueLine> memory;
  std::vector<ValueLine> freezes;
  std::vector<Require> requires_;
  std::vector<Expect> expects;
  std::vector<TableDecl> tables;
  IdVector<ExprId, Expr> exprs;

  const Expr& operator[](ExprId id) const { return exprs[id]; }
};

}  // namespace stave
