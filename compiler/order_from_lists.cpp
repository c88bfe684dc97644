#include "compiler/order_from_lists.h"

#include <fmt/format.h>

#include <algorithm>

namespace stave {

namespace {

/// Most pairs of an `on device` and a device that it holds for.
constexpr std::size_t kMaxOn = std::size_t(1) << 24;

}  // namespace

OrderWriter::OrderWriter(Evaluator& evaluator, const Expansion& expansion, Wanted* wanted)
    : evaluator_(evaluator),
      expansion_(expansion),
      world_(expansion.world),
      code_(evaluator.code()),
      wanted_(wanted),
      written_(world_.ops.size(), 0),
      cursors_(world_.ops.kinds().size()),
      run_(world_.ops.kinds().size(), false) {
  find_facts();
  find_devices();
}

void OrderWriter::find_facts() {
  for (std::uint32_t k = 0; k < world_.ops.kinds().size(); ++k) {
    const OpKind& kind = world_.ops.kinds()[KindId(k)];
    Facts& facts = facts_.emplace_back();
    facts.first = kind.first;
    facts.count = static_cast<std::uint32_t>(kind.indices.size());
    facts.strides = world_.strides[k];
    for (std::size_t i = 0; i < kind.indices.size(); ++i) facts.extents[i] = kind.indices[i].extent;
    facts.partial = world_.partial[k];
    facts.by_stage = world_.places[k].rule == KindPlace::Rule::Stage;
    facts.stage = world_.places[k].index;
    facts.microbatch = world_.places[k].microbatch;
    if (world_.places[k].rule == KindPlace::Rule::Replica) {
      facts.count = world_.places[k].replica;
      facts.replica_stride = facts.strides[facts.count];
      facts.extents[facts.count] = 0;
    }
    for (KindId part : kind.parts) facts.runs.push_back(world_.ops.kinds()[part].first);
    if (facts.runs.empty()) facts.runs.push_back(kind.first);
  }
}

void OrderWriter::find_devices() {
  struct Pair {
    std::uint32_t device = 0;
    std::uint32_t on = 0;
  };
  std::vector<Pair> pairs;
  for (std::uint32_t i = 0; i < code_.devices.size(); ++i) {
    const OnDeviceCode& on = code_.devices[i];
    const std::size_t before = pairs.size();
    if (!on.devices.valid()) {
      for (std::uint32_t d = 0; d < world_.devices; ++d) pairs.push_back({d, i});
    } else if (on.slot == kNoSlot) {
      pairs.push_back({evaluator_.index(on.devices, "device", world_.devices), i});
    } else {
      const Datum list = evaluator_.list(on.devices);
      const Span span = code_.spans[on.devices];
      std::vector<bool> seen(world_.devices, false);
      for (std::int64_t k = 0; k < list.length(); ++k) {
        const Datum each = list[k];
        if (!each.is_whole() || each.integer() < 0 || each.integer() >= world_.devices)
          evaluator_.fail("index-outside", span, fmt::format("there is no device {}: they run from 0 to {}",
                                                             each.text(), world_.devices - 1));
        const std::uint32_t device = static_cast<std::uint32_t>(each.integer());
        if (seen[device]) evaluator_.fail("given-twice", span, fmt::format("device {} is in this list twice", device));
        seen[device] = true;
        pairs.push_back({device, i});
      }
    }
    if (pairs.size() - before > kMaxOn || pairs.size() > kMaxOn)
      evaluator_.fail("too-many", on.span, fmt::format("more than {} orders of devices", kMaxOn));
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.device < b.device; });
  first_on_.assign(world_.devices + std::size_t(1), 0);
  for (const Pair& pair : pairs) ++first_on_[pair.device + 1];
  for (std::uint32_t d = 0; d < world_.devices; ++d) first_on_[d + 1] += first_on_[d];
  for (const Pair& pair : pairs) on_.push_back(pair.on);
}

DeviceOrder OrderWriter::write(std::uint32_t device) {
  device_ = device;
  evaluator_.enter_device(device);
  // What is next on one replica of a stage says nothing about the others.
  if (world_.placement.by_microbatch())
    for (auto& of_kind : cursors_)
      for (Cursors& each : of_kind) std::fill(each.at.begin(), each.at.end(), 0);
  DeviceOrder result;
  if (first_on_[device] == first_on_[device + 1]) {
    evaluator_.leave_device();
    evaluator_.fail("no-order", code_.devices.front().span, fmt::format("device {} has no order", device),
                    "holds for other devices", {});
  }
  for (std::size_t i = first_on_[device]; i < first_on_[device + 1]; ++i)
    write_items(code_.devices[on_[i]], result);
  evaluator_.leave_device();
  return result;
}

void OrderWriter::write_items(const OnDeviceCode& on, DeviceOrder& to) {
  const Arena::Mark mark = evaluator_.arena().mark();
  if (on.slot != kNoSlot) evaluator_.set(on.slot, Datum::whole(device_));
  Block list;
  std::vector<Block> blocks;
  for (const ItemCode& item : on.items) {
    switch (item.kind) {
      case ItemCode::Kind::Statement: body(item.body, list); break;
      case ItemCode::Kind::Block: {
        Block block;
        block.kind = item.order;
        body(item.body, block);
        blocks.push_back(std::move(block));
        break;
      }
      case ItemCode::Kind::Activations:
      case ItemCode::Kind::Memory:
      case ItemCode::Kind::Versions: limit(item, to); break;
    }
  }
  finish(list, to);
  for (Block& block : blocks) finish(block, to);
  evaluator_.arena().release(mark);
}

void OrderWriter::limit(const ItemCode& item, DeviceOrder& to) {
  const bool activations = item.kind == ItemCode::Kind::Activations;
  const bool versions = item.kind == ItemCode::Kind::Versions;
  std::optional<Rational>& limit = activations ? to.activation_limit : versions ? to.version_limit : to.memory_limit;
  Span& span = activations ? to.activation_limit_span : versions ? to.version_limit_span : to.memory_limit_span;
  if (limit)
    evaluator_.fail("given-twice", item.span, "a device has one limit of a kind", "given again", {span, "given first"});
  limit = evaluator_.number(item.value);
  span = item.span;
  if (!versions) return;
  // Versions are whole; a limit between two whole numbers is the lower one.
  limit = Rational(floor(*limit));
  if (*limit < Rational(1))
    evaluator_.fail("limit-impossible", item.span, "a device keeps one version of its weights at least",
                    fmt::format("this is {}", limit->text()));
}

void OrderWriter::finish(Block& block, DeviceOrder& to) {
  if (block.ops.empty()) return;
  if (!block.slots.empty()) {
    std::vector<std::uint32_t> order(block.ops.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return block.slots[a] < block.slots[b]; });
    if (block.kind == OrderKind::List) refuse_same_slots(block, order);
    std::vector<bool> leads(order.size(), false);
    for (std::uint32_t i : block.pairs) leads[i] = true;
    block.pairs.clear();
    std::vector<OpId> sorted;
    sorted.reserve(order.size());
    for (std::uint32_t i : order) {
      if (leads[i]) block.pairs.push_back(static_cast<std::uint32_t>(sorted.size()));
      sorted.push_back(block.ops[i]);
    }
    block.ops = std::move(sorted);
  }
  if (to.blocks.size() == kMaxBlocks)
    evaluator_.fail("too-many", code_.devices.front().span,
                    fmt::format("device {} has more than {} lists and blocks", device_, kMaxBlocks));
  OrderBlock& result = to.blocks.emplace_back();
  result.kind = block.kind;
  result.ops = std::move(block.ops);
  result.pairs = std::move(block.pairs);
}

/// `order` is by slot, then by the text.
void OrderWriter::refuse_same_slots(const Block& block, const std::vector<std::uint32_t>& order) {
  const auto stream = [&](std::uint32_t i) -> const std::string& { return world_.ops.kind(block.ops[i]).stream; };
  for (std::size_t i = 1; i < order.size(); ++i) {
    for (std::size_t k = i; k-- > 0 && block.slots[order[k]] == block.slots[order[i]];) {
      if (stream(order[k]) != stream(order[i])) continue;
      // The two of a pair are one statement.
      if (order[k] + 1 == order[i] && std::binary_search(block.pairs.begin(), block.pairs.end(), order[k])) continue;
      const std::string first = world_.ops.text(block.ops[order[k]]);
      const std::string second = world_.ops.text(block.ops[order[i]]);
      evaluator_.fail("same-slot", block.statements[order[i]]->span,
                      fmt::format("`{}` and `{}` are both in slot {}", first, second, block.slots[order[i]].text()),
                      second, {block.statements[order[k]]->span, first});
    }
  }
}

void OrderWriter::body(const BodyCode& statements, Block& block) {
  for (const StatementCode& statement : statements) {
    switch (statement.kind) {
      case StatementKind::Op: op(statement, block); break;
      case StatementKind::Repeat: repeat(statement, block); break;
      case StatementKind::For: for_each(statement, block); break;
      case StatementKind::If:
        for (const BranchCode& branch : statement.branches) {
          if (branch.condition.valid() && !evaluator_.truth(branch.condition)) continue;
          body(branch.body, block);
          break;
        }
        break;
      case StatementKind::Let: evaluator_.set(statement.slot, evaluator_.value(statement.expr)); break;
    }
  }
}

void OrderWriter::repeat(const StatementCode& statement, Block& block) {
  const std::int64_t turns = evaluator_.whole(statement.expr, "the number of turns");
  const Span span = code_.spans[statement.expr];
  if (turns < 0)
    evaluator_.fail("negative-repeat", span, fmt::format("the number of turns is {}: it must not be negative", turns));
  const Arena::Mark mark = evaluator_.arena().mark();
  for (std::int64_t i = 0; i < turns; ++i) {
    evaluator_.step(span);
    body(statement.body, block);
    evaluator_.arena().release(mark);
  }
}

void OrderWriter::for_each(const StatementCode& statement, Block& block) {
  const Datum list = evaluator_.list(statement.expr);
  const Span span = code_.spans[statement.expr];
  const Arena::Mark mark = evaluator_.arena().mark();
  evaluator_.enter_loop(statement.slot);
  for (std::int64_t i = 0; i < list.length(); ++i) {
    evaluator_.step(span);
    evaluator_.set(statement.slot, list[i]);
    body(statement.body, block);
    evaluator_.arena().release(mark);
  }
  evaluator_.leave_loop();
}

void set_parameters(Evaluator& evaluator, const std::vector<Argument>& arguments) {
  for (const ParameterCode& parameter : evaluator.code().parameters) {
    const auto given = std::find_if(arguments.begin(), arguments.end(),
                                    [&](const Argument& argument) { return argument.name == parameter.name; });
    evaluator.set(parameter.slot, given != arguments.end() ? given->value() : evaluator.value(parameter.value));
  }
  evaluator.evaluate_lets();
}

std::optional<Origin> find_origin(const Expansion& expansion, std::uint32_t device, OpId op,
                                  std::uint32_t occurrence) {
  Diagnostics ignored;
  Wanted wanted;
  wanted.op = op;
  wanted.occurrence = occurrence;
  try {
    Evaluator evaluator(*expansion.code, ignored);
    set_parameters(evaluator, expansion.arguments);
    evaluator.add_budget(std::uint64_t(256) * expansion.world.ops.size());
    OrderWriter writer(evaluator, expansion, &wanted);
    writer.write(device);
  } catch (const OrderWriter::Found&) {
    return wanted.found;
  } catch (const Stop&) {
  }
  return std::nullopt;
}

}  // namespace stave
