// One op statement of an order: what its `next` and `*` stand for, and whether the op may stand here.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/order_from_lists.h"

namespace stave {

namespace {

/// What an index counts, in words.
std::string_view word(const OpIndex& index) {
  switch (index.role) {
    case IndexRole::Stage: return "stage";
    case IndexRole::Microbatch: return "microbatch";
    case IndexRole::Slice: return "slice";
    case IndexRole::Device: return "device";
    case IndexRole::Other:
    case IndexRole::Replica: break;
  }
  return index.name;
}

}  // namespace

OrderWriter::Cursors& OrderWriter::cursors(std::uint32_t kind, std::uint32_t which) {
  Cursors& result = cursors_[kind][which];
  if (!result.at.empty()) return result;
  const Facts& facts = facts_[kind];
  std::uint32_t rows = 1;
  for (std::size_t i = kMaxIndices; i-- > 0;) {
    if (i == which || facts.extents[i] == 0) continue;
    result.steps[i] = rows;
    rows *= facts.extents[i];
  }
  result.at.assign(rows, 0);
  return result;
}
std::string OrderWriter::text(std::uint32_t kind, const Index& at) const {
  return world_.ops.text(OpId(facts_[kind].first + number(facts_[kind], at)));
}

void OrderWriter::op(const StatementCode& statement, Block& block) {
  statement_ = &statement;
  block_ = &block;
  if (statement.at.valid()) slot_ = evaluator_.number(statement.at);
  const TermId id = evaluator_.op(statement.expr);
  if (code_[id].kind == TermKind::Pair) return pair(statement, id, block);
  write(id);
}

void OrderWriter::pair(const StatementCode& statement, TermId id, Block& block) {
  if (block.kind != OrderKind::List)
    evaluator_.fail("misplaced", statement.span, "an overlapped pair stands in a list: `any` and `fill` take single ops");
  const std::size_t before = block.ops.size();
  for (const std::uint32_t i : {0u, 1u}) {
    const TermId each = evaluator_.op(code_.operand(code_[id], i));
    if (code_[each].kind == TermKind::Pair)
      evaluator_.fail("misplaced", code_.spans[each], "two ops overlap, not more");
    write(each);
    if (wanted_ == nullptr && block.ops.size() != before + i + 1)
      evaluator_.fail("misplaced", code_.spans[each], "an overlapped pair has one op on each side of its `with`");
  }
  if (wanted_ != nullptr) return;
  const OpKind& first = world_.ops.kind(block.ops[before]);
  const OpKind& second = world_.ops.kind(block.ops[before + 1]);
  if (first.stream != second.stream)
    evaluator_.fail("misplaced", statement.span,
                    fmt::format("`{}` and `{}` run on different streams: they are beside each other as it is",
                                first.name, second.name));
  block.pairs.push_back(static_cast<std::uint32_t>(before));
}

/// Writes what an op expression stands for.
void OrderWriter::write(TermId id) {
  const Arena::Mark mark = evaluator_.arena().mark();
  const Term& term = code_[id];
  const Facts& facts = facts_[term.target];
  if (wanted_ != nullptr) chosen_.clear();
  Index at = {};
  std::uint32_t nexts = 0;
  std::uint32_t which = 0;
  bool star = false;
  for (std::uint32_t i = 0; i < term.count; ++i) {
    const TermId operand = code_.operand(term, i);
    const Term& index = code_[operand];
    if (index.kind == TermKind::Slot) {
      const Datum& datum = evaluator_.get(index.target);
      if (datum.is_whole() && static_cast<std::uint64_t>(datum.integer()) < facts.extents[i]) {
        at[i] = static_cast<std::uint32_t>(datum.integer());
        continue;
      }
    }
    if (index.kind == TermKind::Next) {
      ++nexts;
      which = i;
    } else if (index.kind == TermKind::Star) {
      star = true;
    } else {
      at[i] = evaluator_.index(operand, word(world_.ops.kinds()[KindId(term.target)].indices[i]), facts.extents[i]);
    }
  }
  evaluator_.arena().release(mark);
  if (star && nexts > 0) {
    evaluator_.fail("misplaced", statement_->span, "an op has `next` or `*` among its indices, not both");
  } else if (nexts == 1) {
    next(term, id, at, which);
    emit(term.target, at);
  } else if (nexts > 1) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < term.count; ++i)
      if (code_[code_.operand(term, i)].kind == TermKind::Next) all.push_back(i);
    all_next(term, id, at, all);
    emit(term.target, at);
  } else if (star) {
    // Microbatches rising, within one its slices, then its stages from the last to the first; then what else there is.
    const OpKind& kind = world_.ops.kinds()[KindId(term.target)];
    std::vector<std::uint32_t> order;
    for (const IndexRole role :
         {IndexRole::Microbatch, IndexRole::Slice, IndexRole::Stage, IndexRole::Device, IndexRole::Other})
      for (std::uint32_t i = 0; i < term.count; ++i)
        if (kind.indices[i].role == role && code_[code_.operand(term, i)].kind == TermKind::Star) order.push_back(i);
    stars(term, at, order, 0);
  } else {
    emit(term.target, at);
  }
}

bool OrderWriter::free_here(std::uint32_t kind, const Index& at, std::uint32_t number) const {
  const Facts& facts = facts_[kind];
  if (written(facts, number)) return false;
  return world_.op_exists(kind, facts.first + number) && device(facts, kind, at, number) == device_;
}

void OrderWriter::stars(const Term& term, Index& at, const std::vector<std::uint32_t>& order, std::size_t k) {
  const std::uint32_t kind = term.target;
  if (k == order.size()) {
    if (free_here(kind, at, number(facts_[kind], at))) {
      if (wanted_ != nullptr) {
        chosen_.clear();
        for (std::uint32_t i : order) chosen_.push_back(at[i]);
      }
      emit(kind, at);
    }
    return;
  }
  const std::uint32_t i = order[k];
  const OpIndex& index = world_.ops.kinds()[KindId(kind)].indices[i];
  const KindPlace& place = world_.places[kind];
  const bool by_stage = place.rule == KindPlace::Rule::Stage || place.rule == KindPlace::Rule::Replica;
  if (by_stage && place.index == i) {
    const Datum stages = evaluator_.stages_on(device_);
    for (std::int64_t s = stages.length(); s-- > 0;) {
      evaluator_.step(statement_->span);
      at[i] = static_cast<std::uint32_t>(stages[s].integer());
      stars(term, at, order, k + 1);
    }
    return;
  }
  const bool falling = index.role == IndexRole::Stage;
  for (std::uint32_t v = 0; v < index.extent; ++v) {
    evaluator_.step(statement_->span);
    at[i] = falling ? index.extent - 1 - v : v;
    stars(term, at, order, k + 1);
  }
}

void OrderWriter::next(const Term& term, TermId id, Index& at, std::uint32_t which) {
  const std::uint32_t kind = term.target;
  const std::uint32_t extent = facts_[kind].extents[which];
  const KindPlace& place = world_.places[kind];
  const bool on_stages = place.rule == KindPlace::Rule::Stage || place.rule == KindPlace::Rule::Replica;
  if (on_stages && place.index == which) {
    const Datum stages = evaluator_.stages_on(device_);
    for (std::int64_t s = 0; s < stages.length(); ++s) {
      at[which] = static_cast<std::uint32_t>(stages[s].integer());
      if (!free_here(kind, at, number(facts_[kind], at))) continue;
      if (wanted_ != nullptr) chosen_ = {at[which]};
      return;
    }
    no_next(term, id, at, which);
  }
  if (place.rule != KindPlace::Rule::Stage) {
    // The device may depend on the index: there is no place to go on from.
    for (at[which] = 0; at[which] < extent; ++at[which]) {
      evaluator_.step(statement_->span);
      if (!free_here(kind, at, number(facts_[kind], at))) continue;
      if (wanted_ != nullptr) chosen_ = {at[which]};
      return;
    }
    no_next(term, id, at, which);
  }
  at[which] = 0;
  const Facts& facts = facts_[kind];
  const bool by_microbatch = facts.by_stage && world_.placement.by_microbatch();
  // On another device there is nothing to look for: say so.
  if (!by_microbatch && device(facts, kind, at, 0) != device_) return;
  const std::uint32_t stride = facts.strides[which];
  const std::uint32_t base = number(facts, at);
  Cursors& all = cursors(kind, which);
  std::uint32_t row = 0;
  for (std::uint32_t i = 0; i < facts.count; ++i) row += at[i] * all.steps[i];
  std::uint32_t& cursor = all.at[row];
  const auto is_elsewhere = [&](std::uint32_t v) {
    at[which] = v;
    return device(facts, kind, at, 0) != device_;
  };
  while (cursor < extent && (written(facts, base + cursor * stride) ||
                             (facts.partial && !world_.exists[facts.first + base + cursor * stride]) ||
                             (by_microbatch && is_elsewhere(cursor))))
    ++cursor;
  if (cursor == extent) no_next(term, id, at, which);
  at[which] = cursor;
  if (wanted_ != nullptr) chosen_ = {cursor};
}

void OrderWriter::all_next(const Term& term, TermId id, Index& at, const std::vector<std::uint32_t>& which) {
  const std::uint32_t kind = term.target;
  const OpKind& of = world_.ops.kinds()[KindId(kind)];
  for (std::uint32_t i : which) at[i] = 0;
  for (;;) {
    evaluator_.step(statement_->span);
    if (of.count > 0 && free_here(kind, at, number(facts_[kind], at))) break;
    std::size_t k = which.size();
    while (k > 0 && ++at[which[k - 1]] >= of.indices[which[k - 1]].extent) at[which[--k]] = 0;
    if (k == 0) no_next(term, id, at, which.back());
  }
  if (wanted_ == nullptr) return;
  chosen_.clear();
  for (std::uint32_t i : which) chosen_.push_back(at[i]);
}

void OrderWriter::no_next(const Term& term, TermId id, const Index& at, std::uint32_t which) {
  const OpKind& kind = world_.ops.kinds()[KindId(term.target)];
  std::string shown;
  for (std::uint32_t i = 0; i < term.count; ++i) {
    if (!kind.indices[i].written()) continue;
    const bool is_next = code_[code_.operand(term, i)].kind == TermKind::Next;
    shown += fmt::format("{}{}", shown.empty() ? "" : ", ", is_next ? "next" : std::to_string(at[i]));
  }
  const OpIndex& index = kind.indices[which];
  Label label;
  if (statement_->span.begin != code_.spans[id].begin || statement_->span.source != code_.spans[id].source)
    label = {code_.spans[code_.operand(term, which)], "this `next`"};
  const Span span = label.span.valid() ? statement_->span : code_.spans[code_.operand(term, which)];
  std::uint32_t count = index.extent;
  for (std::uint32_t i = 0; i < term.count; ++i)
    if (index.role == IndexRole::Slice && kind.indices[i].role == IndexRole::Microbatch &&
        code_[code_.operand(term, i)].kind != TermKind::Next)
      count = evaluator_.slices_of(at[i]);
  evaluator_.fail("no-next", span,
                  fmt::format("no {} is left for `{}({})`: all {} are written", word(index), kind.name, shown, count),
                  "one too many", label);
}

void OrderWriter::match(std::uint32_t kind, OpId op) {
  bool same = op == wanted_->op;
  const OpKind& of = world_.ops.kinds()[KindId(kind)];
  for (KindId part : of.parts)
    same = same || world_.ops.kinds()[part].first + (op.value - of.first) == wanted_->op.value;
  if (!same) return;
  if (wanted_->occurrence > 0) {
    --wanted_->occurrence;
    return;
  }
  Origin origin;
  origin.span = statement_->span;
  origin.note = evaluator_.situation();
  if (!chosen_.empty()) {
    const TermId id = evaluator_.op(statement_->expr);
    bool star = false;
    for (std::uint32_t i = 0; i < code_[id].count; ++i)
      star = star || code_[code_.operand(code_[id], i)].kind == TermKind::Star;
    origin.note += fmt::format(", `{}` being {}", star ? "*" : "next", fmt::join(chosen_, ", "));
  }
  wanted_->found = std::move(origin);
  throw Found{};
}

void OrderWriter::refuse(std::uint32_t kind, const Index& at, std::uint32_t n) {
  const Facts& facts = facts_[kind];
  refuse_slice(evaluator_, world_.ops.kinds()[KindId(kind)], at, statement_->span);
  const bool routed = world_.routes.given() && facts.by_stage && facts.microbatch < facts.count;
  if (routed && !world_.routes.visited(at[facts.stage], at[facts.microbatch]))
    evaluator_.fail("foreign-op", statement_->span, fmt::format("`{}` does not exist", text(kind, at)), "",
                    {code_.route->span, fmt::format("microbatch {} does not visit stage {}", at[facts.microbatch],
                                                    at[facts.stage])});
  if (!world_.op_exists(kind, facts.first + n))
    evaluator_.fail("foreign-op", statement_->span, fmt::format("`{}` does not exist", text(kind, at)), "",
                    {code_.ops[kind].name_span, "declared here, for some indices only"});
  const std::uint32_t runs_on = device(facts, kind, at, n);
  if (runs_on != device_) {
    const Label label = facts.by_stage || facts.replica_stride > 0
                            ? Label{code_.place->span, fmt::format("stage {} is placed here", at[facts.stage])}
                            : Label{code_.ops[kind].name_span, "declared here"};
    evaluator_.fail("wrong-device", statement_->span,
                    fmt::format("`{}` runs on device {}, not on device {}", text(kind, at), runs_on, device_),
                    "written for another device", label);
  }
  Label label;
  for (std::uint32_t first : facts.runs) {
    if (written_[first + n] == 0) continue;
    if (const auto before = find_origin(expansion_, device_, OpId(first + n), 0))
      label = {before->span, fmt::format("written first here, {}", before->note)};
    break;
  }
  evaluator_.fail("repeated-op", statement_->span, fmt::format("`{}` is written a second time", text(kind, at)),
                  "again", label);
}

void OrderWriter::emit(std::uint32_t kind, const Index& at) {
  const Facts& facts = facts_[kind];
  const std::uint32_t n = number(facts, at);
  const OpId op(facts.first + n);
  if ((facts.partial && !world_.exists[op.value]) || device(facts, kind, at, n) != device_) refuse(kind, at, n);
  if (wanted_ != nullptr) {
    match(kind, op);
  } else if (written(facts, n)) {
    refuse(kind, at, n);
  }
  for (std::uint32_t first : facts.runs) written_[first + n] = 1;
  run_[kind] = true;
  block_->ops.push_back(op);
  if (statement_->at.valid()) {
    block_->slots.push_back(slot_);
    block_->statements.push_back(statement_);
  }
}

}  // namespace stave
