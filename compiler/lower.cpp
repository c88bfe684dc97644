#include "compiler/lower.h"

#include "compiler/lower/builder.h"
#include "compiler/lower/issue_order.h"
#include "compiler/lower/readers.h"
#include "compiler/weights.h"

namespace stave {

namespace {

Program with_versions(Program program, const Schedule& schedule, const Table& table, const TableNeeds& needs) {
  WeightVersions versions = weight_versions(schedule, table, needs);
  program.reads_version = std::move(versions.reads);
  program.makes_version = std::move(versions.makes);
  return program;
}

}  // namespace

Program lower(const Schedule& schedule, const Table& table, const Starts& starts) {
  return lower(schedule, table, TableNeeds(schedule, table), starts);
}

Program lower(const Schedule& schedule, const Table& table, const TableNeeds& needs, const Starts& starts) {
  const Readers readers = find_readers(needs, table);
  std::vector<NodeId> order = issue_order(table, needs, starts, readers);
  Builder builder(schedule, table, needs, readers, &starts);
  Program program = builder.build(builder.deal(order));
  program.order = std::move(order);
  return with_versions(std::move(program), schedule, table, needs);
}

Program lower_unchecked(const Schedule& schedule, const Table& table) {
  const TableNeeds needs(schedule, table);
  const Readers readers = find_readers(needs, table);
  Builder builder(schedule, table, needs, readers, nullptr);
  for (std::uint32_t i = 0; i < readers.of.items.size(); ++i)
    if (readers.leads_message(i)) builder.number(i);

  const std::vector<std::uint32_t> block_of = blocks_of(table);
  const auto runs_with = [&](std::uint32_t a, std::uint32_t b) {
    return a == b || (!block_of.empty() && block_of[a] != UINT32_MAX && block_of[a] == block_of[b]);
  };
  Rows<NodeId> rows;
  const auto receive = [&](std::uint32_t position) {
    for (const std::uint32_t i : readers.inputs(needs, position))
      if (i != Readers::kNone && readers.crosses(readers[i]) && readers[i].consumer == position)
        rows.items.push_back(NodeId(table.size() + i));
  };
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      // A pair starts together, when it has what both its ops need.
      if (position == table.first[d] || !runs_with(position - 1, position))
        for (std::uint32_t at = position; at < table.first[d + 1] && runs_with(position, at); ++at) receive(at);
      rows.items.push_back(NodeId(position));
      for (std::uint32_t i = readers.of.first[position]; i < readers.of.first[position + 1]; ++i)
        if (readers.leads_message(i)) rows.items.push_back(NodeId(table.size() + i));
    }
    rows.end_row();
  }
  return with_versions(builder.build(std::move(rows)), schedule, table, needs);
}

}  // namespace stave
