#include "ast_shape.h"

namespace stave {

namespace {

std::string shape(const Ast& ast, const std::vector<ExprId>& all) {
  std::string result;
  for (const ExprId each : all) result += " " + stave::shape(ast, each);
  return result;
}

std::string names(const std::vector<Identifier>& all) {
  std::string result;
  for (const Identifier& each : all) result += " " + each.name;
  return result;
}

std::string shape(const Ast& ast, const LetDecl& let) {
  return "(let " + let.name.name + (let.is_function ? " (" + names(let.parameters) + ")" : "") + " " +
         shape(ast, let.value) + ")";
}

std::string shape(const Ast& ast, const std::vector<Need>& needs) {
  std::string result;
  for (const Need& each : needs) result += " (need " + each.message.name + " " + shape(ast, each.op) + ")";
  return result;
}

std::string shape(const Ast& ast, const Body& body) {
  std::string result = "{";
  for (const Statement& each : body) {
    result += " (" + std::to_string(static_cast<int>(each.kind)) + " " + each.variable.name + " " +
              shape(ast, each.expr) + " at " + shape(ast, each.at) + " " + shape(ast, each.body);
    for (const Branch& branch : each.branches) result += " " + shape(ast, branch.condition) + shape(ast, branch.body);
    if (each.let) result += shape(ast, *each.let);
    result += ")";
  }
  return result + " }";
}

std::string shape(const Ast& ast, const char* name, const std::vector<ValueLine>& lines) {
  std::string result;
  for (const ValueLine& each : lines)
    result += std::string("(") + name + " " + shape(ast, each.target) + " after " + shape(ast, each.after) +
              (each.at_most ? " <= " : " = ") + shape(ast, each.value) + ")\n";
  return result;
}

}  // namespace

std::string shape(const Ast& ast, ExprId id) {
  if (!id.valid()) return "none";
  const Expr& expr = ast[id];
  return "(" + std::to_string(static_cast<int>(expr.kind)) +
         (expr.kind == ExprKind::Binary ? "/" + std::to_string(static_cast<int>(expr.op)) : "") +
         (expr.kind == ExprKind::Number ? " " + expr.value.text() : "") + " " + expr.name.name +
         shape(ast, expr.operands) + ")";
}

std::string shape(const Ast& ast) {
  std::string result = "(schedule " + ast.name.name;
  for (const Parameter& each : ast.parameters) result += " " + each.name.name + " " + shape(ast, each.value);
  result += ")\n";
  for (const Use& each : ast.uses) result += "(use " + each.name + (each.is_file ? " file" : "") + ")\n";
  for (const Setting& each : ast.settings) result += "(" + each.name.name + " " + shape(ast, each.value) + ")\n";
  for (const LetDecl& each : ast.lets) result += shape(ast, each) + "\n";
  for (const Place& each : ast.places)
    result += "(place " + each.stage.name + " " + each.microbatch.name + " " + shape(ast, each.device) + ")\n";
  for (const Route& each : ast.routes)
    result += "(route " + each.microbatch.name + " " + shape(ast, each.stages) + ")\n";
  for (const OpDecl& each : ast.ops) {
    result += "(op " + each.name.name;
    for (const OpParameter& index : each.parameters) result += " " + index.name.name + " " + shape(ast, index.list);
    result += " parts" + shape(ast, each.parts) + (each.optional ? " optional " : " ") + each.stream.name + " " +
              shape(ast, each.device) + shape(ast, each.needs) + " if " + shape(ast, each.condition) + ")\n";
  }
  for (const AddedNeed& each : ast.added_needs)
    result += "(added " + shape(ast, each.op) + shape(ast, each.needs) + ")\n";
  for (const OnDevice& each : ast.devices) {
    result += "(on " + each.variable.name + " " + shape(ast, each.devices) + " " + shape(ast, each.list);
    for (const BlockDecl& block : each.blocks)
      result += (block.kind == BlockKind::Any ? " any " : " fill ") + shape(ast, block.body);
    for (const LimitDecl& limit : each.limits) result += " limit " + limit.what.name + " " + shape(ast, limit.value);
    result += ")\n";
  }
  result += shape(ast, "cost", ast.costs) + shape(ast, "memory", ast.memory) + shape(ast, "freeze", ast.freezes);
  for (const Require& each : ast.requires_)
    result += "(require " + shape(ast, each.condition) + " " + each.text + ")\n";
  for (const Expect& each : ast.expects)
    result += "(expect " + shape(ast, each.claim) + " if " + shape(ast, each.condition) + " for " + each.variable.name +
              " " + shape(ast, each.list) + ")\n";
  for (const TableDecl& table : ast.tables) {
    result += "(table";
    for (const TableRow& row : table.rows) {
      result += " " + std::to_string(row.device) + ":";
      for (std::uint32_t i = row.first; i < row.last; ++i) {
        const Cell& cell = table.cells[i];
        result += cell.overlaps_previous ? "+" : " ";
        if (cell.call != Cell::kNone)
          result += shape(ast, table.calls[cell.call]);
        else
          result += std::to_string(cell.stage) + table.letters[cell.letter] + std::to_string(cell.microbatch);
      }
    }
    result += ")\n";
  }
  return result;
}

}  // namespace stave
