#include "compiler/save_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "compiler/ast.h"
#include "compiler/cell_text.h"
#include "compiler/code.h"
#include "compiler/expansion.h"
#include "compiler/parse.h"
#include "compiler/print.h"
#include "core/check.h"

namespace stave {

namespace {

void append(std::string& text, std::uint32_t number) {
  std::array<char, 12> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), end);
}

/// `Decode(0, 1, 2)` as an expression of `ast`.
ExprId call(Ast& ast, const OpSet& ops, OpId op) {
  const OpName name = ops.name(op);
  const OpKind& kind = ops.kinds()[name.kind];
  Expr result;
  result.kind = ExprKind::Call;
  result.name.name = kind.name;
  for (std::size_t i = 0; i < kind.indices.size(); ++i) {
    if (!kind.indices[i].written()) continue;
    Expr number;
    number.value = Rational(name.index[i]);
    result.operands.push_back(ast.exprs.push_back(std::move(number)));
  }
  return ast.exprs.push_back(std::move(result));
}

TableDecl written_out(Ast& ast, const Table& table) {
  TableDecl decl;
  std::vector<bool> is_short;
  for (const OpKind& kind : table.ops.kinds()) {
    decl.letters.push_back(kind.name);
    is_short.push_back(has_short_cell(kind));
  }
  static_assert(kMaxKinds < Cell::kNoLetter);
  decl.cells.reserve(table.size());
  const std::vector<std::uint32_t> block_of = blocks_of(table);
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    TableRow row;
    row.device = d;
    row.first = static_cast<std::uint32_t>(decl.cells.size());
    const auto ops = table.on(DeviceId(d));
    bool several = false;
    for (OpId op : ops) several = several || table.ops.stage(op) != table.ops.stage(ops[0]);
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      Cell cell;
      cell.overlaps_previous = position > table.first[d] && !block_of.empty() && block_of[position] != UINT32_MAX &&
                               block_of[position] == block_of[position - 1];
      const KindId kind = table.ops.kind_of(op);
      cell.letter = static_cast<std::uint8_t>(kind.value);
      if (is_short[kind.value]) {
        if (several) cell.stage = table.ops.stage(op);
        cell.microbatch = table.ops.microbatch(op);
      } else {
        cell.call = static_cast<std::uint32_t>(decl.calls.size());
        decl.calls.push_back(call(ast, table.ops, op));
      }
      decl.cells.push_back(cell);
    }
    row.last = static_cast<std::uint32_t>(decl.cells.size());
    decl.rows.push_back(row);
  }
  return decl;
}

/// The first stage that stands in two rows, if there is one.
std::optional<std::uint32_t> stage_in_two_rows(const Table& table) {
  std::vector<std::uint32_t> row_of;
  for (std::uint32_t d = 0; d < table.devices(); ++d)
    for (OpId op : table.on(DeviceId(d))) {
      const std::uint32_t stage = table.ops.stage(op);
      if (stage >= row_of.size()) row_of.resize(stage + std::size_t(1), OpId::kNone);
      if (row_of[stage] != OpId::kNone && row_of[stage] != d) return stage;
      row_of[stage] = d;
    }
  return std::nullopt;
}

/// What the files that `code` uses bring in, in an Ast whose `uses` are those of libraries.
Ast declarations_of_uses(const Sources& sources, const Code& code, Diagnostics& sink) {
  Ast result;
  for (const UseCode& each : code.uses) {
    if (each.is_library) continue;
    const bool good = parse_more(sources, each.source, result, sink);
    STAVE_CHECK(good, "a file that was read once cannot be read again");
  }
  result.parameters.clear();
  result.settings.clear();
  result.places.clear();
  result.routes.clear();
  result.devices.clear();
  result.freezes.clear();
  result.requires_.clear();
  result.expects.clear();
  result.tables.clear();
  return result;
}

/// Leaves of the ops of one name the last, and no `use` of a file.
void keep_what_counts(Ast& ast) {
  std::vector<OpDecl> ops;
  for (OpDecl& each : ast.ops) {
    std::erase_if(ops, [&](const OpDecl& other) { return other.name.name == each.name.name; });
    ops.push_back(std::move(each));
  }
  ast.ops = std::move(ops);
  std::vector<Use> uses;
  for (Use& each : ast.uses) {
    const bool again = std::any_of(uses.begin(), uses.end(), [&](const Use& other) { return other.name == each.name; });
    if (!each.is_file && !again) uses.push_back(std::move(each));
  }
  ast.uses = std::move(uses);
}

}  // namespace

Result<std::string> write_csv(const Table& table) {
  struct Letter {
    std::string_view text;
    bool is_short = false;
  };
  std::vector<Letter> letters;
  for (const OpKind& kind : table.ops.kinds()) letters.push_back({info(kind.operation).pytorch, has_short_cell(kind)});
  std::string text;
  text.reserve(std::size_t(table.size()) * 8);
  const std::vector<std::uint32_t> block_of = blocks_of(table);
  for (std::uint32_t d = 0; d < table.devices(); ++d) {
    bool first = true;
    for (std::uint32_t position = table.first[d]; position < table.first[d + 1]; ++position) {
      const OpId op = table.entries[position];
      const auto pairs_with = [&](std::uint32_t other) {
        return !block_of.empty() && other >= table.first[d] && other < table.first[d + 1] &&
               block_of[position] != UINT32_MAX && block_of[position] == block_of[other];
      };
      const bool leads = pairs_with(position + 1);
      const bool follows = pairs_with(position - 1);
      const OpName name = table.ops.name(op);
      const Letter& letter = letters[name.kind.value];
      if (letter.text.empty() || !letter.is_short)
        return Failure{"PyTorch's tables have no op like `" + table.ops.text(op) + "` on device " + std::to_string(d) +
                       ": they have F, I, W and B of a stage and a microbatch"};
      if (!first) text += follows ? ';' : ',';
      first = false;
      if (leads) text += '(';
      append(text, table.ops.stage(op));
      text += letter.text;
      append(text, table.ops.microbatch(op));
      if (follows) text += ")OVERLAP_F_B";
    }
    text += first ? "\"\"\n" : "\n";
  }
  if (const std::optional<std::uint32_t> stage = stage_in_two_rows(table))
    return Failure{"PyTorch's tables have each stage on one device, and stage " + std::to_string(*stage) +
                   " is on two"};
  return text;
}

std::string write_sched(Sources& sources, const Schedule& schedule, const Table& table, std::optional<SourceId> costs) {
  STAVE_CHECK(schedule.expansion != nullptr, "a schedule that comes from no file");
  Diagnostics sink;
  Ast ast = declarations_of_uses(sources, *schedule.expansion->code, sink);
  const bool good = parse_more(sources, schedule.expansion->code->source, ast, sink);
  STAVE_CHECK(good, "a file that was read once cannot be read again");
  keep_what_counts(ast);
  for (const ParameterValue& value : schedule.expansion->parameters)
    for (Parameter& parameter : ast.parameters) {
      if (parameter.name.name != value.name) continue;
      const std::optional<ExprId> expr = parse_value(sources, sources.add(value.name, value.text), ast, sink);
      STAVE_CHECK(expr, "the value of a parameter cannot be read");
      parameter.value = *expr;
    }
  if (costs) {
    const std::optional<std::vector<ValueLine>> lines = parse_costs(sources, *costs, ast, sink);
    STAVE_CHECK(lines, "costs that were read once cannot be read again");
    ast.costs.insert(ast.costs.end(), lines->begin(), lines->end());
  }
  ast.devices.clear();
  ast.tables.clear();
  ast.tables.push_back(written_out(ast, table));
  return print_ast(ast);
}

}  // namespace stave
