// AstBuilder: what making an Ast needs whatever reads the text: expressions that are not too deep, exact numbers,
// errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ast.h"
#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

class AstBuilder {
 public:
  AstBuilder(const Sources& sources, Ast& ast, Diagnostics& sink) : sources_(sources), ast_(ast), sink_(sink) {}

  /// Adds an expression whose operands have been added. The steps after this one walk an expression by recursion, so
  /// one that is too deep (a long sum leans to the left, a long `else` to the right) is refused here.
  ExprId add(Expr expr);
  ExprId add(ExprKind kind, Span span, std::vector<ExprId> operands, Identifier name = {});
  ExprId add_binary(std::string_view op, Span span, std::vector<ExprId> operands);
  /// `12`, `0.25`.
  ExprId add_number(std::string_view text, Span span);

  /// Says once for a file that an expression is too deep.
  void too_deep(Span span);
  void error(std::string_view kind, Span span, std::string message, std::string fix = "");

  /// The name that stands at a place.
  Identifier identifier(Span span) const { return {std::string(sources_.text(span)), span}; }
  /// The text between the quotes that stand at a place.
  std::string unquoted(Span span) const;

 private:
  std::uint32_t depth(ExprId id) const { return id.value < depth_.size() ? depth_[id.value] : 1; }

  const Sources& sources_;
  Ast& ast_;
  Diagnostics& sink_;
  /// Depth of each expression of ast_ that was made here.
  std::vector<std::uint32_t> depth_;
  bool too_deep_ = false;
};

}  // namespace stave
