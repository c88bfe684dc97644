#include "compiler/csv.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "compiler/check.h"
#include "compiler/code.h"
#include "compiler/csv_cells.h"
#include "compiler/parse.h"
#include "compiler/uses.h"
#include "core/check.h"

namespace stave {

namespace {

/// Where a stage was met first.
struct StagePlace {
  std::uint32_t device = Cell::kNone;
  Span span;
};

/// The device of every stage. False after an error.
bool place_stages(const TableDecl& table, std::vector<StagePlace>& places, Diagnostics& sink) {
  std::vector<bool> said;
  for (const TableRow& row : table.rows) {
    for (std::uint32_t i = row.first; i < row.last; ++i) {
      const Cell& cell = table.cells[i];
      if (cell.stage >= places.size()) {
        places.resize(cell.stage + std::size_t(1));
        said.resize(places.size(), false);
      }
      StagePlace& place = places[cell.stage];
      if (place.device == row.device) continue;
      const Span span{table.source, cell.begin, cell.begin + cell.length};
      if (place.device == Cell::kNone) {
        place = {row.device, span};
        continue;
      }
      if (said[cell.stage]) continue;
      said[cell.stage] = true;
      Diagnostic diagnostic;
      diagnostic.kind = "csv-stage";
      diagnostic.message = "stage " + std::to_string(cell.stage) + " stands in the rows of two devices, " +
                           std::to_string(place.device) + " and " + std::to_string(row.device);
      diagnostic.primary = {span, "device " + std::to_string(row.device)};
      diagnostic.labels.push_back({place.span, "device " + std::to_string(place.device) + " has it first"});
      diagnostic.notes.push_back("each stage runs on exactly one device");
      sink.add(std::move(diagnostic));
    }
  }
  if (sink.has_errors()) return false;
  for (std::size_t stage = 0; stage < places.size(); ++stage) {
    if (places[stage].device != Cell::kNone) continue;
    Diagnostic diagnostic;
    diagnostic.kind = "csv-stage";
    diagnostic.message = "no row has an op of stage " + std::to_string(stage) + ", but there is a stage " +
                         std::to_string(places.size() - 1);
    diagnostic.primary = {places.back().span, "the highest stage"};
    diagnostic.notes.push_back("stages are numbered from 0 without gaps");
    sink.add(std::move(diagnostic));
    return false;
  }
  return true;
}

/// What a `.sched` file says before its table.
std::string head_of(const TableDecl& table, const std::vector<StagePlace>& places) {
  std::uint32_t microbatches = 0;
  for (const Cell& cell : table.cells) microbatches = std::max(microbatches, cell.microbatch + 1);
  std::string head = "schedule csv\n\ndevices " + std::to_string(table.rows.size()) + "\nstages " +
                     std::to_string(places.size()) + "\nmicrobatches " + std::to_string(microbatches) +
                     "\nplace stage s on device ";
  bool identity = true;
  for (std::size_t s = 0; s < places.size(); ++s) identity = identity && places[s].device == s;
  if (identity) return head + "s\n";
  for (std::size_t s = 0; s < places.size(); ++s) head += (s == 0 ? "[" : ", ") + std::to_string(places[s].device);
  return head + "][s]\n";
}

}  // namespace

bool looks_like_csv(std::string_view name, std::string_view text) {
  constexpr std::string_view kEnding = ".csv";
  const bool ends = name.size() >= kEnding.size() &&
                    std::equal(kEnding.rbegin(), kEnding.rend(), name.rbegin(),
                               [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  if (ends || name.ends_with(".sched")) return ends;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos &&
         (text[first] == '"' || text[first] == ',' || text[first] == '(' || (text[first] >= '0' && text[first] <= '9'));
}

std::optional<Compiled> compile_csv(Sources& sources, SourceId source, Diagnostics& sink) {
  const std::size_t before = sink.errors();
  TableDecl table = read_csv_cells(sources, source, sink);
  if (sink.errors() > before) return std::nullopt;
  std::vector<StagePlace> places;
  if (!place_stages(table, places, sink)) return std::nullopt;

  const SourceId head = sources.add(sources[source].name + " (stages and microbatches)", head_of(table, places));
  std::optional<Ast> file = parse(sources, head, sink);
  STAVE_CHECK(file, "the declarations of a CSV table cannot be read");
  file->tables.push_back(std::move(table));
  std::optional<Code> code = check({bring_in_library(sources, "training")}, std::move(*file), sink);
  if (!code) return std::nullopt;
  return Compiled{std::make_shared<const Code>(std::move(*code))};
}

}  // namespace stave
