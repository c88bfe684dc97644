// Resolver: names in view, and expressions whose names are resolved to slots, functions and ops of a Code.
// Which declarations there are, and in which order they come into view, is check.cpp's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ast.h"
#include "compiler/code.h"
#include "compiler/diagnostics.h"

namespace stave {

/// What an expression may speak of beside variables, functions and settings.
enum class Speaks : std::uint8_t {
  /// Nothing else.
  Plain,
  /// A `cost` line: the letters of ops, for the costs above.
  OfCosts,
  /// An `expect`: letters, metrics.
  OfResult,
};

class Resolver {
 public:
  Resolver(Code& code, Diagnostics& sink) : code_(code), sink_(sink) {}

  /// The file whose expressions are resolved from now on. A file that is brought in may have variables with the names of
  /// the files that use it.
  void enter(const Ast& ast, bool brought_in) {
    ast_ = &ast;
    brought_in_ = brought_in;
  }
  const Ast& ast() const { return *ast_; }

  enum class Meaning : std::uint8_t { Variable, Let, Function, Op };
  struct Binding {
    Meaning meaning = Meaning::Variable;
    std::uint32_t number = 0;
    Span span;
  };

  /// Brings a name into view: of the whole file, or until `leave`. A name that hides another is an error.
  /// Reports a name that is in view before the ops are; true if `op` has one.
  bool refuse_hidden_op(const Identifier& op);
  void declare_global(const Identifier& name, Meaning meaning, std::uint32_t number);
  void declare(const Identifier& name, Meaning meaning, std::uint32_t number);
  /// A new variable in view until `leave`.
  std::uint32_t declare_slot(const Identifier& name);
  std::uint32_t new_slot(const std::string& name);
  std::size_t view() const { return locals_.size(); }
  void leave(std::size_t view) { locals_.resize(view); }
  const Binding* find(std::string_view name) const;

  /// The value of an expression; not valid after an error, which is in the sink.
  TermId value(ExprId id, Speaks speaks = Speaks::Plain);
  /// The op of a statement.
  TermId op(ExprId id);
  /// The number of the op that a call names, with its indices as `needs` of an op may give them (`*`, ranges);
  /// kNoSlot after an error.
  std::uint32_t needed_op(ExprId id, std::vector<TermId>& indices);
  /// The op that a name stands for, or kNoSlot and an error.
  std::uint32_t op_number(const Identifier& name);
  /// The number of indices an op may be given: all, or all but the slice.
  bool index_count_fits(const OpCode& op, std::size_t count) const;
  static std::size_t slice_index(const OpCode& op);

  /// Whether an expression is an op, not a value.
  bool is_op(ExprId id) const { return is_op(*ast_, id, 0); }
  /// The declaration of a global function, for `is_op`.
  void know_function(const std::string& name, ExprId value) { function_values_[name] = {ast_, value}; }

  /// Functions and lets that the expressions since `watch` call; for the search of endless ones.
  struct Calls {
    std::vector<std::uint32_t> lets;
    std::vector<std::uint32_t> functions;
    std::uint32_t depth = 0;
  };
  void watch(Calls* calls) { calls_ = calls; }

  void error(std::string_view kind, Span span, std::string message, std::string label = "", Label other = {},
             std::string fix = "");
  void unknown(const Identifier& name, Speaks speaks, const char* what);

 private:
  TermId make(TermKind kind, Span span, std::uint32_t target, const std::vector<TermId>& operands);
  TermId resolve(ExprId id, Speaks speaks, std::uint32_t depth);
  TermId resolve_pair_cost(const Expr& expr, Speaks speaks);
  TermId resolve_name(const Expr& expr, Speaks speaks, std::uint32_t depth);
  TermId resolve_call(const Expr& expr, Speaks speaks, std::uint32_t depth);
  /// The payload that a name means: kNoSlot for any of them; none if it means no message.
  std::optional<std::uint32_t> payload(const std::string& name) const;
  TermId resolve_metric(const Expr& expr, const MetricInfo& metric, std::uint32_t depth);
  TermId resolve_function(const Expr& expr, const Binding& binding, Speaks speaks, bool as_op, std::uint32_t depth);
  TermId resolve_op(ExprId id, std::uint32_t depth);
  TermId op_term(const Expr& expr, std::uint32_t number, TermKind kind, Speaks speaks, std::uint32_t depth);
  bool deep(Span span, std::uint32_t depth);
  /// Reports `a < b < c`.
  bool chains(const Expr& expr);
  void refuse_hiding(const Identifier& name, bool may_be_others);
  bool is_op(const Ast& ast, ExprId id, int depth) const;

  Code& code_;
  Diagnostics& sink_;
  const Ast* ast_ = nullptr;
  bool brought_in_ = false;
  bool reported_depth_ = false;
  struct Local {
    std::string name;
    Binding binding;
  };
  std::vector<Local> locals_;
  std::map<std::string, Binding, std::less<>> globals_;
  struct FunctionValue {
    const Ast* ast = nullptr;
    ExprId value;
  };
  std::map<std::string, FunctionValue, std::less<>> function_values_;
  Calls* calls_ = nullptr;
};

}  // namespace stave
