#include "compiler/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/check_calls.h"
#include "compiler/check_order.h"
#include "compiler/check_prices.h"
#include "compiler/resolve.h"
#include "compiler/weights.h"

namespace stave {

namespace {

class Checker {
 public:
  Checker(const std::vector<BroughtIn>& brought_in, Ast& file, Diagnostics& sink)
      : brought_in_(brought_in), file_(file), sink_(sink), resolver_(code_, sink) {
    for (const BroughtIn& each : brought_in) files_.push_back(&each.ast);
    files_.push_back(&file);
  }

  std::optional<Code> run() {
    code_.source = file_.source;
    code_.name = file_.name.name;
    code_.name_span = file_.name.span;
    for (const BroughtIn& each : brought_in_)
      if (each.use.valid()) code_.uses.push_back({each.ast.source, each.use, !each.library.empty()});
    parameters();
    if (!declare_ops()) return std::nullopt;
    declare_lets();
    if (!has_tokens()) return std::nullopt;
    op_indices();
    resolve_lets();
    for (std::size_t i = 0; i < declared_.size(); ++i) op_rest(i);
    for (const Ast* ast : files_) {
      enter(*ast);
      for (const AddedNeed& added : ast->added_needs) added_need(added);
    }
    settings();
    place();
    check_order(file_, resolver_, code_, calls_of_functions_);
    for (const Ast* ast : files_) {
      enter(*ast);
      check_prices(*ast, resolver_, code_);
    }
    claims();
    check_calls(code_, calls_of_lets_, calls_of_functions_, resolver_);
    if (sink_.has_errors()) return std::nullopt;
    return std::move(code_);
  }

 private:
  void enter(const Ast& ast) { resolver_.enter(ast, &ast != &file_); }
  /// A place for what is missing: the name of the schedule, or the beginning of the file.
  Span head() const { return code_.name_span.valid() ? code_.name_span : Span{file_.source, 0, 0}; }

  /// Reports a `use inference` without what it needs.
  bool has_tokens() {
    for (const BroughtIn& each : brought_in_) {
      if (each.library != "inference") continue;
      const Resolver::Binding* tokens = resolver_.find("tokens");
      if (tokens != nullptr && tokens->meaning != Resolver::Meaning::Function &&
          tokens->meaning != Resolver::Meaning::Op)
        continue;
      resolver_.error("missing", each.use,
                      "`use inference` needs a list `tokens`: how many tokens are decoded for each microbatch", "",
                      tokens == nullptr ? Label() : Label{tokens->span, "this is no list"}, "add `let tokens = [4, 2, 7]`");
      return false;
    }
    return true;
  }

  void parameters() {
    enter(file_);
    if (!code_.name_span.valid())
      resolver_.error("missing", head(), "the file does not say what the schedule is called", "", {},
                      "begin it with `schedule name(P = 4, M = 8)`");
    for (const Parameter& parameter : file_.parameters) {
      ParameterCode code;
      code.name = parameter.name.name;
      code.span = parameter.name.span;
      code.value = resolver_.value(parameter.value);
      code.slot = resolver_.new_slot(code.name);
      resolver_.declare_global(parameter.name, Resolver::Meaning::Variable, code.slot);
      code_.parameters.push_back(std::move(code));
    }
  }

  struct Declared {
    const Ast* ast = nullptr;
    const OpDecl* decl = nullptr;
  };

  /// False if there is no use in going on: everything would be wrong that speaks of an op.
  bool declare_ops() {
    for (const Ast* ast : files_) {
      enter(*ast);
      for (const OpDecl& decl : ast->ops) {
        const auto same = std::find_if(declared_.begin(), declared_.end(),
                                       [&](const Declared& other) { return other.decl->name.name == decl.name.name; });
        if (same == declared_.end()) {
          if (declared_.size() == kMaxKinds) {
            resolver_.error("too-many", decl.name.span,
                            fmt::format("more than {} kinds of op, with those of `use`", kMaxKinds));
            return false;
          }
          declared_.push_back({ast, &decl});
        } else if (same->ast == ast) {
          resolver_.error("given-twice", decl.name.span, fmt::format("op `{}` is declared twice", decl.name.name),
                          "declared again", {same->decl->name.span, "declared first"});
        } else {
          *same = {ast, &decl};
        }
      }
    }
    bool hidden = false;
    for (const Declared& declared : declared_) {
      enter(*declared.ast);
      if (resolver_.refuse_hidden_op(declared.decl->name)) {
        hidden = true;
        continue;
      }
      OpCode op;
      op.name = declared.decl->name.name;
      op.name_span = declared.decl->name.span;
      op.optional = declared.decl->optional;
      op.stream = declared.decl->stream.name;
      op.stream_span = declared.decl->stream.span;
      resolver_.declare_global(declared.decl->name, Resolver::Meaning::Op,
                               static_cast<std::uint32_t>(code_.ops.size()));
      code_.ops.push_back(std::move(op));
    }
    return !hidden;
  }

  /// Every file sees the lets of all.
  void declare_lets() {
    for (const Ast* ast : files_) {
      enter(*ast);
      for (const LetDecl& let : ast->lets) {
        if (let.is_function) resolver_.know_function(let.name.name, let.value);
        lets_.push_back({ast, &let, 0, false});
      }
    }
    // Which lets are ops is known when all of their names are.
    for (Let& each : lets_) {
      enter(*each.ast);
      each.is_function = each.decl->is_function || resolver_.is_op(each.decl->value);
      if (each.is_function) {
        each.number = static_cast<std::uint32_t>(code_.functions.size());
        FunctionCode function;
        function.name = each.decl->name.name;
        function.span = each.decl->name.span;
        for (const Identifier& name : each.decl->parameters) function.slots.push_back(resolver_.new_slot(name.name));
        code_.functions.push_back(std::move(function));
        resolver_.declare_global(each.decl->name, Resolver::Meaning::Function, each.number);
      } else {
        each.number = static_cast<std::uint32_t>(code_.lets.size());
        code_.lets.push_back({each.decl->name.name, each.decl->name.span, TermId()});
        resolver_.declare_global(each.decl->name, Resolver::Meaning::Let, each.number);
      }
    }
    for (const Let& each : lets_) {
      if (!each.is_function) continue;
      enter(*each.ast);
      code_.functions[each.number].gives_op = resolver_.is_op(each.decl->value);
    }
  }

  void resolve_lets() {
    for (const Let& each : lets_) {
      enter(*each.ast);
      Resolver::Calls calls;
      resolver_.watch(&calls);
      if (each.is_function) {
        const std::size_t outside = resolver_.view();
        for (std::size_t p = 0; p < each.decl->parameters.size(); ++p)
          resolver_.declare(each.decl->parameters[p], Resolver::Meaning::Variable,
                            code_.functions[each.number].slots[p]);
        const bool gives_op = code_.functions[each.number].gives_op;
        code_.functions[each.number].value =
            gives_op ? resolver_.op(each.decl->value) : resolver_.value(each.decl->value);
        resolver_.leave(outside);
        calls_of_functions_.resize(code_.functions.size());
        calls_of_functions_[each.number] = std::move(calls);
      } else {
        code_.lets[each.number].value = resolver_.value(each.decl->value);
        calls_of_lets_.resize(code_.lets.size());
        calls_of_lets_[each.number] = std::move(calls);
      }
      resolver_.watch(nullptr);
    }
  }

  void op_indices() {
    for (std::size_t i = 0; i < declared_.size(); ++i) {
      const OpDecl& decl = *declared_[i].decl;
      enter(*declared_[i].ast);
      if (decl.parameters.size() > kMaxIndices) {
        resolver_.error("argument-count", decl.name.span,
                        fmt::format("`{}` has {} indices; an op has at most {}", decl.name.name,
                                    decl.parameters.size(), kMaxIndices));
        continue;
      }
      const std::size_t outside = resolver_.view();
      std::uint32_t first_slot = static_cast<std::uint32_t>(code_.slots.size());
      for (const OpParameter& parameter : decl.parameters) {
        IndexCode index;
        index.name = parameter.name.name;
        const std::size_t terms = code_.terms.size();
        index.list = resolver_.value(parameter.list);
        for (std::size_t t = terms; t < code_.terms.size(); ++t) {
          const Term& term = code_.terms[TermId(static_cast<std::uint32_t>(t))];
          const bool earlier = term.kind == TermKind::Slot && term.target >= first_slot &&
                               term.target < first_slot + code_.ops[i].indices.size();
          index.ragged = index.ragged || earlier;
        }
        if (index.list.valid() && code_[index.list].kind == TermKind::Setting) {
          constexpr std::array<IndexRole, 4> kRoles = {IndexRole::Device, IndexRole::Stage, IndexRole::Microbatch,
                                                       IndexRole::Slice};
          index.role = kRoles[code_[index.list].target];
          for (const IndexCode& other : code_.ops[i].indices)
            if (other.role == index.role)
              resolver_.error("given-twice", parameter.name.span,
                              fmt::format("`{}` has two indices in {}", decl.name.name,
                                          kSettings[code_[index.list].target]));
        }
        index.slot = resolver_.declare_slot(parameter.name);
        if (code_.ops[i].indices.empty()) first_slot = index.slot;
        code_.ops[i].indices.push_back(std::move(index));
      }
      resolver_.leave(outside);
    }
  }

  void op_rest(std::size_t i) {
    const OpDecl& decl = *declared_[i].decl;
    enter(*declared_[i].ast);
    if (decl.parameters.size() > kMaxIndices) return;
    const std::size_t outside = resolver_.view();
    std::vector<std::uint32_t> slots;
    for (std::size_t p = 0; p < decl.parameters.size(); ++p) {
      slots.push_back(code_.ops[i].indices[p].slot);
      resolver_.declare(decl.parameters[p].name, Resolver::Meaning::Variable, slots.back());
    }
    for (ExprId part : decl.parts) op_part(i, part, slots);
    if (decl.device.valid()) code_.ops[i].device = resolver_.value(decl.device);
    if (decl.condition.valid()) code_.ops[i].condition = resolver_.value(decl.condition);
    for (const Need& need : decl.needs) op_need(static_cast<std::uint32_t>(i), need, slots);
    resolver_.leave(outside);
  }

  void op_part(std::size_t whole, ExprId part, const std::vector<std::uint32_t>& slots) {
    std::vector<TermId> indices;
    const std::uint32_t number = resolver_.needed_op(part, indices);
    if (number == kNoSlot) return;
    const Span span = resolver_.ast()[part].span;
    const OpCode& op = code_.ops[number];
    bool same = indices.size() == slots.size();
    for (std::size_t k = 0; same && k < slots.size(); ++k)
      same = code_[indices[k]].kind == TermKind::Slot && code_[indices[k]].target == slots[k];
    if (!same) {
      resolver_.error("fused-op", span,
                      fmt::format("a part of `{}` carries its indices, in their order", code_.ops[whole].name));
    } else if (std::find_if(declared_.begin(), declared_.end(), [&](const Declared& other) {
                 return other.decl->name.name == op.name && !other.decl->parts.empty();
               }) != declared_.end()) {
      resolver_.error("fused-op", span, fmt::format("`{}` is fused itself, and so is no part of another", op.name));
    } else if (op.optional || !op.stream.empty()) {
      resolver_.error("fused-op", span, fmt::format("`{}` is optional or has a stream: it is no part of another",
                                                    op.name));
    } else if (std::find(code_.ops[whole].parts.begin(), code_.ops[whole].parts.end(), number) !=
               code_.ops[whole].parts.end()) {
      resolver_.error("fused-op", span, fmt::format("`{}` is a part twice", op.name));
    } else {
      code_.ops[whole].parts.push_back(number);
    }
  }

  void op_need(std::uint32_t op, const Need& need, const std::vector<std::uint32_t>& slots) {
    NeedCode code;
    code.message = need.message.name;
    code.slots = slots;
    code.span = need.span;
    code.op = resolver_.needed_op(need.op, code.indices);
    if (code.op == kNoSlot) return;
    const auto is = [&](std::uint32_t number, Operation operation) {
      return operation_of(code_.ops[number].name) == operation;
    };
    if (code.message == kWeightsPayload &&
        !(is(op, Operation::Forward) && (is(code.op, Operation::Optimizer) || is(code.op, Operation::Forward)))) {
      resolver_.error("misplaced", need.span,
                      "weights are received by a forward, from an optimizer step or from another forward", "", {},
                      "the backward of a forward reads what it has read");
      return;
    }
    if (!code.message.empty() &&
        std::find(code_.payloads.begin(), code_.payloads.end(), code.message) == code_.payloads.end()) {
      // The first has no name: that of `after`.
      if (code_.payloads.size() > kMaxPayloads) {
        resolver_.error("too-many", need.message.span, fmt::format("more than {} names of messages", kMaxPayloads));
        return;
      }
      code_.payloads.push_back(code.message);
    }
    code_.ops[op].needs.push_back(std::move(code));
  }

  void added_need(const AddedNeed& added) {
    const Expr& call = resolver_.ast()[added.op];
    const std::uint32_t number = resolver_.op_number(call.name);
    if (number == kNoSlot) return;
    const OpCode& op = code_.ops[number];
    if (!resolver_.index_count_fits(op, call.operands.size())) {
      resolver_.error("argument-count", call.span,
                      fmt::format("`{}` has {} indices, not {}", op.name, op.indices.size(), call.operands.size()), "",
                      {op.name_span, "declared here"});
      return;
    }
    const std::size_t outside = resolver_.view();
    const std::vector<std::uint32_t> slots = declare_indices(call, op, resolver_);
    if (slots.size() == op.indices.size())
      for (const Need& need : added.needs) op_need(number, need, slots);
    resolver_.leave(outside);
  }

  void settings() {
    enter(file_);
    for (const Setting& setting : file_.settings) {
      const auto found = std::find(kSettings.begin(), kSettings.end(), setting.name.name);
      std::optional<SettingCode>& code = code_.settings[static_cast<std::size_t>(found - kSettings.begin())];
      if (code) {
        resolver_.error("given-twice", setting.span, fmt::format("`{}` is given twice", setting.name.name),
                        "given again", {code->span, "given first"});
        continue;
      }
      code = SettingCode{setting.span, resolver_.value(setting.value)};
    }
    for (const SettingKind kind : {SettingKind::Devices, SettingKind::Stages, SettingKind::Microbatches}) {
      const std::size_t number = static_cast<std::size_t>(kind);
      if (!code_.settings[number])
        resolver_.error("missing", head(), fmt::format("the schedule does not say how many {} there are",
                                                       kSettings[number]),
                        "", {}, fmt::format("add `{} 4`", kSettings[number]));
    }
    for (const Route& route : file_.routes) {
      if (code_.route) {
        resolver_.error("given-twice", route.span, "a schedule has one `route`", "given again",
                        {code_.route->span, "given first"});
        continue;
      }
      const std::size_t outside = resolver_.view();
      const std::uint32_t slot = resolver_.declare_slot(route.microbatch);
      code_.route = RouteCode{slot, resolver_.value(route.stages), route.span};
      resolver_.leave(outside);
    }
  }

  void place() {
    enter(file_);
    for (const Place& place : file_.places) {
      if (code_.place) {
        resolver_.error("given-twice", place.span, "`place` is given twice", "given again",
                        {code_.place->span, "given first"});
        continue;
      }
      PlaceCode code;
      code.span = place.span;
      const std::size_t outside = resolver_.view();
      code.slot = resolver_.declare_slot(place.stage);
      if (!place.microbatch.name.empty()) code.microbatch_slot = resolver_.declare_slot(place.microbatch);
      code.device = resolver_.value(place.device);
      resolver_.leave(outside);
      code_.place = code;
    }
    if (code_.place) return;
    const auto needs_place = [](const OpCode& op) {
      bool stage = false;
      bool device = op.device.valid();
      for (const IndexCode& index : op.indices) {
        stage = stage || index.role == IndexRole::Stage;
        device = device || index.role == IndexRole::Device;
      }
      return stage && !device;
    };
    if (std::any_of(code_.ops.begin(), code_.ops.end(), needs_place))
      resolver_.error("missing", head(), "the schedule does not say on which device a stage lies", "", {},
                      "add `place stage s on device s`");
  }

  void claims() {
    enter(file_);
    for (const Require& require : file_.requires_)
      code_.requires_.push_back({resolver_.value(require.condition), require.text});
    for (const Expect& expect : file_.expects) {
      ExpectCode code;
      code.span = expect.span;
      if (expect.list.valid()) code.list = resolver_.value(expect.list, Speaks::OfResult);
      const std::size_t outside = resolver_.view();
      if (expect.list.valid()) {
        code.slot = resolver_.declare_slot(expect.variable);
        code.variable = expect.variable.name;
      }
      code.claim = resolver_.value(expect.claim, Speaks::OfResult);
      if (expect.condition.valid()) code.condition = resolver_.value(expect.condition, Speaks::OfResult);
      resolver_.leave(outside);
      code_.expects.push_back(std::move(code));
    }
  }

  struct Let {
    const Ast* ast = nullptr;
    const LetDecl* decl = nullptr;
    std::uint32_t number = 0;
    bool is_function = false;
  };

  const std::vector<BroughtIn>& brought_in_;
  Ast& file_;
  Diagnostics& sink_;
  Code code_;
  Resolver resolver_;
  /// What is brought in, and the file last.
  std::vector<const Ast*> files_;
  std::vector<Declared> declared_;
  std::vector<Let> lets_;
  std::vector<Resolver::Calls> calls_of_lets_;
  std::vector<Resolver::Calls> calls_of_functions_;
};

}  // namespace

std::optional<Code> check(const std::vector<BroughtIn>& brought_in, Ast file, Diagnostics& sink) {
  return Checker(brought_in, file, sink).run();
}

}  // namespace stave
