#include "compiler/lower.h"

#include "compiler/lower/builder.h"
#include "compiler/lower/issue_order.h"
#include "compiler/lower/readers.h"
#include "compiler/table_needs.h"

namespace stave {

namespace {

/// Deals the nodes of `order` out to their devices; a message goes to both of its own.
Rows<NodeId> issue_rows(const Program& program, const std::vector<std::uint16_t>& device_at) {
  const auto devices_of = [&](NodeId node, auto&& visit) {
    if (!program.is_message(node)) return visit(device_at[node.value]);
    const Edge& edge = program.edges[program.message(node).edge.value];
    visit(edge.source.value);
    visit(edge.target.value);
  };
  Rows<NodeId> rows;
  rows.first.assign(std::size_t(program.table.devices()) + 1, 0);
  for (NodeId node : program.order) devices_of(node, [&](std::uint32_t d) { ++rows.first[d + 1]; });
  for (std::uint32_t d = 0; d < program.table.devices(); ++d) rows.first[d + 1] += rows.first[d];
  rows.items.resize(rows.first.back());
  std::vector<std::uint32_t> next(rows.first.begin(), rows.first.end() - 1);
  for (NodeId node : program.order) devices_of(node, [&](std::uint32_t d) { rows.items[next[d]++] = node; });
  return rows;
}

}  // namespace

Program lower(const Schedule& schedule, const Table& table, const Starts& starts) {
  const Readers readers = find_readers(schedule, table);
  const std::vector<std::uint32_t> order = issue_order(table, starts, readers);
  Builder builder(schedule, table, readers, &starts);
  Program& program = builder.program();
  program.order.reserve(order.size());
  for (std::uint32_t node : order) {
    if (node < table.size()) {
      builder.entry(node);
      program.order.push_back(NodeId(node));
      continue;
    }
    const MessageId id = builder.add_message(node - table.size());
    builder.receive(id);
    builder.send(id);
    program.order.push_back(program.node(id));
  }
  program.issue = issue_rows(program, readers.device_at);
  return builder.finish();
}

Program lower_unchecked(const Schedule& schedule, const Table& table) {
  const Readers readers = find_readers(schedule, table);
  const TableNeeds needs(schedule, table);
  Builder builder(schedule, table, readers, nullptr);
  Program& program = builder.program();
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i)
    if (readers.crosses(readers[i]) && readers.leads(i)) builder.add_message(i);

  std::vector<std::uint32_t> late;
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      for (std::uint32_t i : readers.inputs[position]) {
        if (i == Readers::kNone || !readers.crosses(readers[i]) || readers[i].consumer != position) continue;
        builder.receive(builder.message_of(i));
        program.issue.items.push_back(program.node(builder.message_of(i)));
      }
      late.clear();
      needs.for_each(position, [&](std::uint32_t needed, std::uint16_t) {
        if (needed > position && needed < table.first[d + 1]) late.push_back(needed);
      });
      builder.entry(position, late);
      program.issue.items.push_back(NodeId(position));
      for (std::uint32_t i = readers.of.first[position]; i < readers.of.first[position + 1]; ++i) {
        if (!readers.crosses(readers[i]) || !readers.leads(i)) continue;
        builder.send(builder.message_of(i));
        program.issue.items.push_back(program.node(builder.message_of(i)));
      }
    }
    program.issue.end_row();
  }
  return builder.finish();
}

}  // namespace stave
