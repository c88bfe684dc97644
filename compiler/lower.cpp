#include "compiler/lower.h"

#include "compiler/lower/builder.h"
#include "compiler/lower/issue_order.h"
#include "compiler/lower/readers.h"
#include "compiler/table_needs.h"
#include "compiler/weights.h"

namespace stave {

namespace {

constexpr std::size_t kAhead = 24;

/// Deals the nodes of `order` out to their devices; a message goes to both of its own.
DraftRows deal(const std::vector<std::uint32_t>& order, const Table& table, const Readers& readers) {
  DraftRows rows;
  rows.first.assign(table.devices() + std::size_t(1), 0);
  for (std::uint32_t d = 0; d < table.devices(); ++d) rows.first[d + 1] = table.first[d + 1] - table.first[d];
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i) {
    if (!readers.crosses(readers[i]) || !readers.leads(i)) continue;
    ++rows.first[readers.device_at[readers[i].producer] + 1];
    ++rows.first[readers[i].device + 1];
  }
  for (std::uint32_t d = 0; d < table.devices(); ++d) rows.first[d + 1] += rows.first[d];
  rows.items.resize(rows.first.back());
  std::vector<std::uint32_t> next(rows.first.begin(), rows.first.end() - 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size() && order[i + kAhead] >= table.size())
      __builtin_prefetch(&readers.of.items[order[i + kAhead] - table.size()]);
    const std::uint32_t node = order[i];
    if (node < table.size()) {
      rows.items[next[readers.device_at[node]]++] = node;
      continue;
    }
    const Reader& reader = readers[node - table.size()];
    rows.items[next[readers.device_at[reader.producer]]++] = node;
    rows.items[next[reader.device]++] = node;
  }
  return rows;
}

Program with_versions(Program program, const Schedule& schedule, const Table& table) {
  WeightVersions versions = weight_versions(schedule, table);
  program.reads_version = std::move(versions.reads);
  program.makes_version = std::move(versions.makes);
  return program;
}

}  // namespace

Program lower(const Schedule& schedule, const Table& table, const Starts& starts) {
  const TableNeeds needs(schedule, table);
  const Readers readers = find_readers(needs, table, schedule.needs.items.size());
  std::vector<std::uint32_t> drafts = issue_order(table, needs, starts, readers);
  Builder builder(schedule, table, needs, readers, &starts);
  DraftRows rows = deal(drafts, table, readers);
  std::vector<NodeId> order;
  order.reserve(drafts.size());
  for (std::uint32_t node : drafts)
    order.push_back(node < table.size() ? NodeId(node)
                                        : NodeId(table.size() + builder.number(node - table.size()).value));
  drafts = {};
  Program program = builder.build(std::move(rows));
  program.order = std::move(order);
  return with_versions(std::move(program), schedule, table);
}

Program lower_unchecked(const Schedule& schedule, const Table& table) {
  const TableNeeds needs(schedule, table);
  const Readers readers = find_readers(needs, table, schedule.needs.items.size());
  Builder builder(schedule, table, needs, readers, nullptr);
  const auto is_message = [&](std::uint32_t i) { return readers.crosses(readers[i]) && readers.leads(i); };
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i)
    if (is_message(i)) builder.number(i);

  const std::vector<std::uint32_t> block_of = blocks_of(table);
  const auto runs_with = [&](std::uint32_t a, std::uint32_t b) {
    return a == b || (!block_of.empty() && block_of[a] != UINT32_MAX && block_of[a] == block_of[b]);
  };
  DraftRows rows;
  const auto receive = [&](std::uint32_t position) {
    for (std::uint32_t i : readers.inputs[position])
      if (i != Readers::kNone && readers.crosses(readers[i]) && readers[i].consumer == position)
        rows.items.push_back(table.size() + i);
  };
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      // A pair starts together, when it has what both its ops need.
      if (position == table.first[d] || !runs_with(position - 1, position))
        for (std::uint32_t at = position; at < table.first[d + 1] && runs_with(position, at); ++at) receive(at);
      rows.items.push_back(position);
      for (std::uint32_t i = readers.of.first[position]; i < readers.of.first[position + 1]; ++i)
        if (is_message(i)) rows.items.push_back(table.size() + i);
    }
    rows.end_row();
  }
  return with_versions(builder.build(std::move(rows)), schedule, table);
}

}  // namespace stave
