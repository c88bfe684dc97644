#include "compiler/check_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/nearest.h"

namespace stave {

namespace {

class Orders {
 public:
  Orders(const Ast& file, Resolver& resolver, Code& code, std::vector<Resolver::Calls>& calls)
      : file_(file), resolver_(resolver), code_(code), calls_(calls) {}

  void on_device(const OnDevice& on) {
    OnDeviceCode code;
    // What stands before the brace.
    code.span = on.span;
    if (!on.variable.name.empty()) code.span.end = on.variable.span.end;
    if (on.devices.valid()) code.span.end = file_[on.devices].span.end;
    if (on.devices.valid()) code.devices = resolver_.value(on.devices);
    const std::size_t outside = resolver_.view();
    if (!on.variable.name.empty()) code.slot = resolver_.declare_slot(on.variable);
    // The parts in the order of the text: that is the order of `next`.
    struct Part {
      std::uint32_t begin = 0;
      const Statement* statement = nullptr;
      const BlockDecl* block = nullptr;
      const LimitDecl* limit = nullptr;
    };
    std::vector<Part> parts;
    for (const Statement& each : on.list) parts.push_back({each.span.begin, &each, nullptr, nullptr});
    for (const BlockDecl& each : on.blocks) parts.push_back({each.span.begin, nullptr, &each, nullptr});
    for (const LimitDecl& each : on.limits) parts.push_back({each.span.begin, nullptr, nullptr, &each});
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    Slotted list_slots;
    for (const Part& part : parts) {
      ItemCode item;
      if (part.statement != nullptr) {
        item.span = part.statement->span;
        statement(*part.statement, item.body, list_slots);
      } else if (part.block != nullptr) {
        item.kind = ItemCode::Kind::Block;
        item.order = part.block->kind == BlockKind::Any ? OrderKind::Any : OrderKind::Fill;
        item.span = part.block->span;
        Slotted slots;
        body(part.block->body, item.body, slots);
        refuse_some_slots(slots);
      } else {
        item.span = part.limit->span;
        if (!limit(*part.limit, item)) continue;
      }
      code.items.push_back(std::move(item));
    }
    refuse_some_slots(list_slots);
    resolver_.leave(outside);
    code_.devices.push_back(std::move(code));
  }

  void table(TableDecl& table) {
    if (code_.table != nullptr) {
      resolver_.error("given-twice", table.span, "a schedule has one table", "given again",
                      {code_.table->span, "given first"});
      return;
    }
    if (!file_.devices.empty()) {
      resolver_.error("given-twice", table.span, "the order is given twice: by a table and by `on device`", "a table",
                      {code_.devices.front().span, "an `on device`"});
      return;
    }
    std::vector<const TableRow*> rows;
    for (const TableRow& row : table.rows) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const TableRow* a, const TableRow* b) { return a->device < b->device; });
    for (std::size_t i = 1; i < rows.size(); ++i)
      if (rows[i]->device == rows[i - 1]->device)
        resolver_.error("given-twice", rows[i]->device_span, fmt::format("device {} has two rows", rows[i]->device),
                        "given again", {rows[i - 1]->device_span, "given first"});
    for (std::size_t i = 0; i < table.letters.size(); ++i) {
      const auto cell = std::find_if(table.cells.begin(), table.cells.end(), [&](const Cell& each) {
        return each.call == Cell::kNone && each.letter == i;
      });
      Span span = table.span;
      if (cell != table.cells.end()) {
        span.begin = cell->begin;
        span.end = cell->begin + cell->length;
      }
      code_.table_letters.push_back(resolver_.op_number({table.letters[i], span}));
    }
    for (ExprId call : table.calls) code_.table_calls.push_back(resolver_.op(call));
    code_.table = std::make_shared<TableDecl>(std::move(table));
  }

 private:
  /// The first op statement of a list or block with a slot, and the first without.
  struct Slotted {
    Span with;
    Span without;
  };

  void refuse_some_slots(const Slotted& slots) {
    if (!slots.with.valid() || !slots.without.valid()) return;
    resolver_.error("some-slots", slots.without, "some statements of this block have a slot and some have none",
                    "without `at`", {slots.with, "with `at`"});
  }

  bool limit(const LimitDecl& limit, ItemCode& item) {
    constexpr std::array<std::string_view, 3> kLimits = {"activations", "memory", "versions"};
    constexpr std::array<ItemCode::Kind, 3> kKinds = {ItemCode::Kind::Activations, ItemCode::Kind::Memory,
                                                      ItemCode::Kind::Versions};
    const auto found = std::find(kLimits.begin(), kLimits.end(), limit.what.name);
    if (found == kLimits.end()) {
      const std::string_view nearest = nearest_name(limit.what.name, {kLimits.begin(), kLimits.end()});
      resolver_.error("unknown-name", limit.what.span, fmt::format("there is no limit of `{}`", limit.what.name),
                      "unknown", {},
                      nearest.empty() ? "the limits are `activations`, `memory` and `versions`"
                                      : fmt::format("did you mean `{}`?", nearest));
      return false;
    }
    item.kind = kKinds[static_cast<std::size_t>(found - kLimits.begin())];
    item.value = resolver_.value(limit.value);
    return true;
  }

  void body(const Body& statements, BodyCode& to, Slotted& slots) {
    const std::size_t outside = resolver_.view();
    for (const Statement& each : statements) statement(each, to, slots);
    resolver_.leave(outside);
  }

  void statement(const Statement& from, BodyCode& to, Slotted& slots) {
    StatementCode code;
    code.kind = from.kind;
    code.span = from.span;
    switch (from.kind) {
      case StatementKind::Op:
        code.span = file_[from.expr].span;
        code.expr = resolver_.op(from.expr);
        if (from.at.valid()) code.at = resolver_.value(from.at);
        if (Span& first = from.at.valid() ? slots.with : slots.without; !first.valid()) first = code.span;
        break;
      case StatementKind::Repeat:
        code.expr = resolver_.value(from.expr);
        body(from.body, code.body, slots);
        break;
      case StatementKind::For: {
        code.expr = resolver_.value(from.expr);
        const std::size_t outside = resolver_.view();
        code.slot = resolver_.declare_slot(from.variable);
        body(from.body, code.body, slots);
        resolver_.leave(outside);
        break;
      }
      case StatementKind::If:
        for (const Branch& branch : from.branches) {
          BranchCode& to_branch = code.branches.emplace_back();
          if (branch.condition.valid()) to_branch.condition = resolver_.value(branch.condition);
          body(branch.body, to_branch.body, slots);
        }
        break;
      case StatementKind::Let:
        if (!let(*from.let, code)) return;
        break;
    }
    to.push_back(std::move(code));
  }

  /// False for a function: nothing is run where it stands.
  bool let(const LetDecl& decl, StatementCode& code) {
    const bool gives_op = resolver_.is_op(decl.value);
    if (!decl.is_function && !gives_op) {
      code.expr = resolver_.value(decl.value);
      code.slot = resolver_.declare_slot(decl.name);
      return true;
    }
    const std::uint32_t number = static_cast<std::uint32_t>(code_.functions.size());
    FunctionCode function;
    function.name = decl.name.name;
    function.span = decl.name.span;
    function.gives_op = gives_op;
    function.local = true;
    code_.functions.push_back(std::move(function));
    // In view of itself, so that a function that calls itself is told so.
    resolver_.declare(decl.name, Resolver::Meaning::Function, number);
    const std::size_t outside = resolver_.view();
    for (const Identifier& name : decl.parameters) {
      const std::uint32_t slot = resolver_.declare_slot(name);
      code_.functions[number].slots.push_back(slot);
    }
    Resolver::Calls calls;
    resolver_.watch(&calls);
    const TermId value = gives_op ? resolver_.op(decl.value) : resolver_.value(decl.value);
    resolver_.watch(nullptr);
    code_.functions[number].value = value;
    resolver_.leave(outside);
    calls_.resize(code_.functions.size());
    calls_[number] = std::move(calls);
    return false;
  }

  const Ast& file_;
  Resolver& resolver_;
  Code& code_;
  std::vector<Resolver::Calls>& calls_;
};

}  // namespace

void check_order(Ast& file, Resolver& resolver, Code& code, std::vector<Resolver::Calls>& calls) {
  Orders orders(file, resolver, code, calls);
  for (const OnDevice& on : file.devices) orders.on_device(on);
  for (TableDecl& table : file.tables) orders.table(table);
  if (file.devices.empty() && file.tables.empty())
    resolver.error("missing", code.name_span.valid() ? code.name_span : Span{file.source, 0, 0},
                   "the schedule has no order: no `on device` and no `table`");
}

}  // namespace stave
