#include "compiler/order_from_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/cell_text.h"
#include "compiler/order_from_lists.h"

namespace stave {

namespace {

using Index = std::array<std::uint32_t, kMaxIndices>;

class Cells {
 public:
  Cells(Evaluator& evaluator, const World& world)
      : evaluator_(evaluator), world_(world), code_(evaluator.code()), table_(*code_.table) {}

  Span span(const Cell& cell) const { return {table_.source, cell.begin, cell.begin + cell.length}; }

  void enter(std::uint32_t device) {
    device_ = device;
    const Datum stages = code_.place ? evaluator_.stages_on(device) : Datum::written(nullptr, 0);
    stages_ = stages.length();
    only_stage_ = stages_ == 1 ? static_cast<std::uint32_t>(stages[0].integer()) : Cell::kNone;
  }

  struct Op {
    std::uint32_t kind = 0;
    std::uint32_t number = 0;
  };

  /// The op of a cell. Errors: a diagnostic, and Stop.
  Op op(const Cell& cell) {
    if (cell.call != Cell::kNone) return called(cell);
    const std::uint32_t kind = code_.table_letters[cell.letter];
    const OpKind& of = world_.ops.kinds()[KindId(kind)];
    std::uint32_t number = 0;
    Index at = {};
    if (!has_short_cell(of)) other_indices(cell, of);
    for (std::size_t i = 0; i < of.indices.size(); ++i) {
      switch (of.indices[i].role) {
        case IndexRole::Stage: at[i] = cell.stage != Cell::kNone ? cell.stage : only_stage_; break;
        case IndexRole::Microbatch: at[i] = cell.microbatch; break;
        case IndexRole::Slice: break;
        case IndexRole::Device: at[i] = device_; break;
        case IndexRole::Other: at[i] = Cell::kNone; break;
        case IndexRole::Replica: at[i] = replica(kind, at); break;
      }
      if (at[i] >= of.indices[i].extent) outside(cell, of, i, at[i]);
      number += at[i] * world_.strides[kind][i];
    }
    check(cell, kind, at, number);
    return {kind, number};
  }

 private:
  [[noreturn]] void other_indices(const Cell& cell, const OpKind& kind) {
    evaluator_.fail("table-cell", span(cell),
                    fmt::format("`{}` has other indices than a stage and a microbatch: write `{}(...)`", kind.name,
                                kind.name));
  }

  [[noreturn]] void outside(const Cell& cell, const OpKind& kind, std::size_t i, std::uint32_t value) {
    const OpIndex& index = kind.indices[i];
    if (value == Cell::kNone && index.role == IndexRole::Stage)
      evaluator_.fail("table-cell", span(cell),
                      fmt::format("device {} has {} stages: write which, as in `0{}1`", device_, stages_, kind.name));
    evaluator_.fail("index-outside", span(cell),
                    fmt::format("there is no {} {}: they run from 0 to {}",
                                index.role == IndexRole::Stage ? "stage" : "microbatch", value,
                                std::int64_t(index.extent) - 1));
  }

  Op called(const Cell& cell) {
    const TermId id = evaluator_.op(code_.table_calls[cell.call]);
    const Term& term = code_[id];
    const OpKind& of = world_.ops.kinds()[KindId(term.target)];
    Index at = {};
    std::uint32_t number = 0;
    for (std::uint32_t i = 0; i < term.count; ++i) {
      const TermKind kind = code_[code_.operand(term, i)].kind;
      if (kind == TermKind::Next || kind == TermKind::Star)
        evaluator_.fail("misplaced", span(cell), "a cell of a table names its op: `next` and `*` have no meaning here");
      at[i] = evaluator_.index(code_.operand(term, i), of.indices[i].name, of.indices[i].extent);
      number += at[i] * world_.strides[term.target][i];
    }
    if (const KindPlace& place = world_.places[term.target]; place.rule == KindPlace::Rule::Replica) {
      at[place.replica] = replica(term.target, at);
      number += at[place.replica] * world_.strides[term.target][place.replica];
    }
    check(cell, term.target, at, number);
    return {term.target, number};
  }

  /// That of the device in hand; the first, which lies elsewhere, if it has none.
  std::uint32_t replica(std::uint32_t kind, const Index& at) const {
    const std::uint32_t result = world_.placement.replica(at[world_.places[kind].index], device_);
    return result == Placement::kNone ? 0 : result;
  }

  void check(const Cell& cell, std::uint32_t kind, const Index& at, std::uint32_t number) {
    const std::uint32_t op = world_.ops.kinds()[KindId(kind)].first + number;
    refuse_slice(evaluator_, world_.ops.kinds()[KindId(kind)], at, span(cell));
    if (!world_.op_exists(kind, op))
      evaluator_.fail("foreign-op", span(cell), fmt::format("`{}` does not exist", world_.ops.text(OpId(op))));
    const std::uint32_t device = world_.device(kind, at, number);
    if (device == device_) return;
    const KindPlace& place = world_.places[kind];
    const Label label = place.rule == KindPlace::Rule::Stage || place.rule == KindPlace::Rule::Replica
                            ? Label{code_.place->span, fmt::format("stage {} is placed here", at[place.index])}
                            : Label{code_.ops[kind].name_span, "declared here"};
    evaluator_.fail("wrong-device", span(cell),
                    fmt::format("`{}` runs on device {}, not on device {}", world_.ops.text(OpId(op)), device, device_),
                    "in the row of another device", label);
  }

  Evaluator& evaluator_;
  const World& world_;
  const Code& code_;
  const TableDecl& table_;
  std::uint32_t device_ = 0;
  std::int64_t stages_ = 0;
  std::uint32_t only_stage_ = Cell::kNone;
};

/// The numbers of the ops that are run: the parts of a fused one.
template <class Visit>
void for_each_part(const World& world, std::uint32_t kind, std::uint32_t number, const Visit& visit) {
  const OpKind& of = world.ops.kinds()[KindId(kind)];
  if (of.parts.empty()) visit(of.first + number);
  for (KindId part : of.parts) visit(world.ops.kinds()[part].first + number);
}

/// The cell of a row before `end` that runs `op`, after `skip` others.
const Cell* find_in_row(Cells& cells, const World& world, const TableDecl& table, const TableRow& row,
                        std::uint32_t end, std::uint32_t wanted, std::uint32_t skip) {
  cells.enter(row.device);
  for (std::uint32_t i = row.first; i < end; ++i) {
    const Cells::Op op = cells.op(table.cells[i]);
    bool same = world.ops.kinds()[KindId(op.kind)].first + op.number == wanted;
    for_each_part(world, op.kind, op.number, [&](std::uint32_t part) { same = same || part == wanted; });
    if (same && skip-- == 0) return &table.cells[i];
  }
  return nullptr;
}

}  // namespace

void order_from_table(Evaluator& evaluator, const Expansion& expansion, IdVector<DeviceId, DeviceOrder>& orders,
                 std::vector<bool>& run) {
  const World& world = expansion.world;
  const TableDecl& table = *evaluator.code().table;
  Cells cells(evaluator, world);
  std::vector<bool> written(world.ops.size(), false);
  std::vector<bool> has_row(world.devices, false);
  bool wrong = false;
  for (const TableRow& row : table.rows) {
    try {
      if (row.device >= world.devices)
        evaluator.fail("index-outside", row.device_span,
                       fmt::format("there is no device {}: they run from 0 to {}", row.device, world.devices - 1));
      has_row[row.device] = true;
      cells.enter(row.device);
      OrderBlock block;
      block.ops.reserve(row.last - row.first);
      for (std::uint32_t i = row.first; i < row.last; ++i) {
        const Cells::Op op = cells.op(table.cells[i]);
        bool again = false;
        for_each_part(world, op.kind, op.number, [&](std::uint32_t part) {
          again = again || written[part];
          written[part] = true;
        });
        const OpId id(world.ops.kinds()[KindId(op.kind)].first + op.number);
        if (again) {
          const Cell* first = nullptr;
          for_each_part(world, op.kind, op.number, [&](std::uint32_t part) {
            if (first == nullptr) first = find_in_row(cells, world, table, row, i, part, 0);
          });
          evaluator.fail("repeated-op", cells.span(table.cells[i]),
                         fmt::format("`{}` is written a second time", world.ops.text(id)), "again",
                         first == nullptr ? Label{} : Label{cells.span(*first), "written first here"});
        }
        if (table.cells[i].overlaps_previous)
          block.pairs.push_back(static_cast<std::uint32_t>(block.ops.size()) - 1);
        block.ops.push_back(id);
        run[op.kind] = true;
      }
      if (!block.ops.empty()) orders[DeviceId(row.device)].blocks.push_back(std::move(block));
    } catch (const Stop&) {
      wrong = true;
    }
  }
  for (std::uint32_t d = 0; d < world.devices && !wrong; ++d)
    if (!has_row[d])
      evaluator.fail("no-order", table.span, fmt::format("device {} has no order: the table has no row for it", d));
  if (wrong) throw Stop{};
}

std::optional<Origin> find_cell(const Expansion& expansion, std::uint32_t device, OpId op, std::uint32_t occurrence) {
  Diagnostics ignored;
  try {
    Evaluator evaluator(*expansion.code, ignored);
    set_parameters(evaluator, expansion.arguments);
    Cells cells(evaluator, expansion.world);
    const TableDecl& table = *expansion.code->table;
    for (const TableRow& row : table.rows) {
      if (row.device != device) continue;
      const Cell* cell = find_in_row(cells, expansion.world, table, row, row.last, op.value, occurrence);
      if (cell != nullptr) return Origin{cells.span(*cell), fmt::format("on device {}", device)};
    }
  } catch (const Stop&) {
  }
  return std::nullopt;
}

}  // namespace stave
