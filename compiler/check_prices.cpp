#include "compiler/check_prices.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/check.h"
#include "compiler/nearest.h"

namespace stave {

std::vector<std::uint32_t> declare_indices(const Expr& call, const OpCode& op, Resolver& resolver) {
  std::vector<std::uint32_t> slots;
  const std::size_t left_out =
      call.operands.size() == op.indices.size() ? op.indices.size() : Resolver::slice_index(op);
  for (ExprId id : call.operands) {
    if (slots.size() == left_out) slots.push_back(kNoSlot);
    const Expr& name = resolver.ast()[id];
    if (name.kind != ExprKind::Name) {
      resolver.error("not-a-name", name.span, fmt::format("a new name for an index of `{}` is needed here", op.name));
      return {};
    }
    slots.push_back(resolver.declare_slot(name.name));
  }
  if (slots.size() == left_out && left_out < op.indices.size()) slots.push_back(kNoSlot);
  return slots;
}

namespace {

enum class Family : std::uint8_t { Cost, Memory, Freeze };

class Lines {
 public:
  Lines(const Ast& ast, Resolver& resolver, Code& code) : ast_(ast), resolver_(resolver), code_(code) {}

  void add(const ValueLine& line, Family family, std::vector<ValueCode>& to) {
    if (line.at_most) {
      not_yet(line.span, "solving for freeze ratios");
      return;
    }
    const Expr& target = ast_[line.target];
    const std::size_t outside = resolver_.view();
    ValueCode code;
    code.target_span = target.span;
    const bool found = line.after.valid()                ? find_two(line.target, line.after, family, code)
                       : target.kind == ExprKind::With ? find_two(target.operands[0], target.operands[1], family, code)
                                                       : find_target(target, family, code);
    if (line.after.valid()) code.target = ValueCode::Target::Setup;
    if (found) {
      const std::size_t terms = code_.terms.size();
      code.value = resolver_.value(line.value, family == Family::Cost ? Speaks::OfCosts : Speaks::Plain);
      code.used.assign(code.slots.size(), false);
      for (std::size_t t = terms; t < code_.terms.size(); ++t) {
        const Term& term = code_.terms[TermId(static_cast<std::uint32_t>(t))];
        if (term.kind != TermKind::Slot) continue;
        for (std::size_t i = 0; i < code.slots.size(); ++i)
          if (code.slots[i] == term.target) code.used[i] = true;
      }
      if (line.after.valid()) refuse_other_indices(code, terms);
      to.push_back(std::move(code));
    }
    resolver_.leave(outside);
  }

 private:
  void not_yet(Span span, const char* what) {
    resolver_.error("not-yet", span, fmt::format("{} is not supported by this version", what));
  }

  /// What the line is about; its indices are in view then. False after an error.
  bool find_target(const Expr& target, Family family, ValueCode& code) {
    const std::string& name = target.name.name;
    const Resolver::Binding* binding = resolver_.find(name);
    if (binding == nullptr || binding->meaning != Resolver::Meaning::Op) {
      const auto payload = std::find(code_.payloads.begin() + 1, code_.payloads.end(), name);
      if (family == Family::Cost && (name == "message" || payload != code_.payloads.end())) {
        code.target = name == "message" ? ValueCode::Target::AllMessages : ValueCode::Target::Message;
        code.message = name;
        return target.kind == ExprKind::Name || find_link(target, code);
      }
      if (family == Family::Memory && name == "weights") return find_weights(target, code);
      return unknown_target(target, family);
    }
    code.op = binding->number;
    const OpCode& op = code_.ops[code.op];
    if (family == Family::Freeze && operation_of(op.name) != Operation::WeightGradient) {
      resolver_.error("freeze-target", target.span,
                      fmt::format("a freeze ratio belongs to W, the weight gradient, and not to `{}`", op.name));
      return false;
    }
    if (target.kind == ExprKind::Name) return true;
    if (!resolver_.index_count_fits(op, target.operands.size())) return wrong_count(target, op);
    code.slots = declare_indices(target, op, resolver_);
    return code.slots.size() == op.indices.size();
  }

  /// `F with B`, `F after B`, or both with new names for their indices.
  bool find_two(ExprId one, ExprId other, Family family, ValueCode& code) {
    if (family != Family::Cost) {
      resolver_.error("misplaced", code.target_span, "what concerns two ops is a cost, and nothing else");
      return false;
    }
    code.target = ValueCode::Target::Pair;
    for (const bool first : {true, false}) {
      const Expr& each = ast_[first ? one : other];
      const std::uint32_t number = resolver_.op_number(each.name);
      if (number == kNoSlot) return false;
      (first ? code.op : code.other) = number;
      if (each.kind == ExprKind::Name) continue;
      const OpCode& op = code_.ops[number];
      if (!resolver_.index_count_fits(op, each.operands.size())) return wrong_count(each, op);
      (first ? code.slots : code.other_slots) = declare_indices(each, op, resolver_);
      if ((first ? code.slots : code.other_slots).size() != op.indices.size()) return false;
    }
    return true;
  }

  /// A device changes from stage to stage; which microbatch comes next is all one.
  void refuse_other_indices(const ValueCode& code, std::size_t first_term) {
    const auto is_stage = [&](std::uint32_t op, std::size_t i) { return code_.ops[op].indices[i].role == IndexRole::Stage; };
    for (std::size_t t = first_term; t < code_.terms.size(); ++t) {
      const Term& term = code_.terms[TermId(static_cast<std::uint32_t>(t))];
      if (term.kind != TermKind::Slot) continue;
      bool wrong = false;
      for (std::size_t i = 0; i < code.slots.size(); ++i)
        wrong = wrong || (code.slots[i] == term.target && !is_stage(code.op, i));
      for (std::size_t i = 0; i < code.other_slots.size(); ++i)
        wrong = wrong || (code.other_slots[i] == term.target && !is_stage(code.other, i));
      if (!wrong) continue;
      resolver_.error("misplaced", code_.spans[TermId(static_cast<std::uint32_t>(t))],
                      "a setup depends on the stages of the two ops, and on nothing else of them");
      return;
    }
  }

  bool wrong_count(const Expr& target, const OpCode& op) {
    resolver_.error("argument-count", target.span,
                    fmt::format("`{}` has {} indices, not {}", op.name, op.indices.size(), target.operands.size()), "",
                    {op.name_span, "declared here"});
    return false;
  }

  bool find_link(const Expr& target, ValueCode& code) {
    const auto is_name = [&](ExprId id) { return ast_[id].kind == ExprKind::Name; };
    if (target.operands.size() != 2 || !std::all_of(target.operands.begin(), target.operands.end(), is_name)) {
      resolver_.error("argument-count", target.span,
                      "a message has two indices, new names for the device that sends it and the one that receives it");
      return false;
    }
    for (const ExprId id : target.operands) code.slots.push_back(resolver_.declare_slot(ast_[id].name));
    return true;
  }

  bool find_weights(const Expr& target, ValueCode& code) {
    code.target = ValueCode::Target::Weights;
    if (target.kind == ExprKind::Name) return true;
    if (target.operands.size() != 1 || ast_[target.operands[0]].kind != ExprKind::Name) {
      resolver_.error("argument-count", target.span, "weights have one index, a new name for their stage");
      return false;
    }
    code.slots = {resolver_.declare_slot(ast_[target.operands[0]].name)};
    return true;
  }

  bool unknown_target(const Expr& target, Family family) {
    std::vector<std::string_view> known;
    for (const OpCode& op : code_.ops) known.push_back(op.name);
    if (family == Family::Cost) {
      known.push_back("message");
      known.insert(known.end(), code_.payloads.begin() + 1, code_.payloads.end());
    }
    if (family == Family::Memory) known.push_back("weights");
    const std::string_view nearest = nearest_name(target.name.name, known);
    resolver_.error("unknown-name", target.name.span,
                    fmt::format("there is no op{} called `{}`", family == Family::Cost ? " or message" : "",
                                target.name.name),
                    "unknown", {},
                    nearest.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                                    : fmt::format("did you mean `{}`?", nearest));
    return false;
  }

  const Ast& ast_;
  Resolver& resolver_;
  Code& code_;
};

}  // namespace

void check_prices(const Ast& ast, Resolver& resolver, Code& code) {
  Lines lines(ast, resolver, code);
  for (const ValueLine& line : ast.costs) lines.add(line, Family::Cost, code.costs);
  for (const ValueLine& line : ast.memory) lines.add(line, Family::Memory, code.memory);
  for (const ValueLine& line : ast.freezes) lines.add(line, Family::Freeze, code.freezes);
}

bool check_costs(const Ast& argument, const std::vector<ValueLine>& value_lines, Code& code, Diagnostics& sink) {
  const std::size_t errors = sink.errors();
  Resolver resolver(code, sink);
  resolver.enter(argument, false);
  const auto see = [&](const std::string& name, Span span, Resolver::Meaning meaning, std::size_t number) {
    resolver.declare_global({name, span}, meaning, static_cast<std::uint32_t>(number));
  };
  for (const ParameterCode& each : code.parameters) see(each.name, each.span, Resolver::Meaning::Variable, each.slot);
  for (std::size_t i = 0; i < code.ops.size(); ++i)
    see(code.ops[i].name, code.ops[i].name_span, Resolver::Meaning::Op, i);
  for (std::size_t i = 0; i < code.lets.size(); ++i)
    see(code.lets[i].name, code.lets[i].span, Resolver::Meaning::Let, i);
  for (std::size_t i = 0; i < code.functions.size(); ++i)
    if (!code.functions[i].local)
      see(code.functions[i].name, code.functions[i].span, Resolver::Meaning::Function, i);
  Lines lines(argument, resolver, code);
  for (const ValueLine& line : value_lines) lines.add(line, Family::Cost, code.costs);
  return sink.errors() == errors;
}

}  // namespace stave
