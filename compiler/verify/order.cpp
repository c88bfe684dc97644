// Whether the devices, each running its row in order, come to the end; and if not, why.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/cell_text.h"
#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "compiler/verify.h"
#include "compiler/verify/blocked.h"
#include "core/lanes.h"

namespace stave {

namespace {

/// Most edges of a cycle that are written out.
constexpr std::size_t kMostLines = 24;

/// Says why a table that got stuck did.
class Explain {
 public:
  Explain(const Schedule& schedule, const Table& table, const Lanes& lanes, const TableNeeds& needs,
          const TableWalk& walk, Diagnostics& sink)
      : schedule_(schedule),
        table_(table),
        lanes_(lanes),
        needs_(needs),
        walk_(walk),
        block_of_(blocks_of(table)),
        cell_(schedule),
        sink_(sink) {}

  void say() {
    if (say_blocks() || say_inversions()) return;
    say_cycle(shortest_cycle(Blocked(table_, lanes_, needs_, walk_), walk_.heads()));
  }

 private:
  /// An entry that stands before another of its device that it needs.
  struct Inversion {
    std::uint32_t kind = 0;
    std::uint32_t needed_kind = 0;
    std::uint32_t position = 0;
    std::uint32_t needed = 0;
    std::uint32_t count = 0;
  };

  DeviceId device(std::uint32_t position) const { return table_.device_of(position); }
  OpId op(std::uint32_t position) const { return table_.entries[position]; }
  std::string on(std::uint32_t position) const { return cell_.on(op(position), device(position)); }
  Origin origin(std::uint32_t position) const {
    return schedule_.origins ? schedule_.origins->of(device(position), op(position)) : Origin();
  }

  /// An overlapped pair of which one needs the other can never start.
  bool say_blocks() {
    bool found = false;
    for (std::uint32_t b = 0; b < table_.blocks.size(); ++b) {
      for (std::uint32_t position : table_.blocks[b]) {
        std::uint32_t needed = OpId::kNone;
        needs_.for_each(position, [&](std::uint32_t at, std::uint16_t) {
          if (block_of_[at] == b) needed = at;
        });
        if (needed == OpId::kNone) continue;
        Diagnostic diagnostic;
        diagnostic.kind = "overlap-needs";
        diagnostic.message = on(position) + " overlaps with `" + cell_(op(needed)) + "`, which it needs";
        const Origin here = origin(table_.blocks[b].front());
        diagnostic.primary = {here.span, "a pair starts when both are ready"};
        if (!here.note.empty()) diagnostic.notes.push_back(here.note);
        if (!found) sink_.add(std::move(diagnostic));
        found = true;
      }
    }
    return found;
  }

  /// Whether the order of the device puts `position` before `other`, of the same device.
  bool stands_before(std::uint32_t position, std::uint32_t other) const {
    if (other <= position) return false;
    if (lanes_.plain() || lanes_.lane(position) == lanes_.lane(other)) return true;
    const std::uint32_t before = lanes_.written_after(other);
    return lanes_.computes(position) && before != Lanes::kNone && before >= position;
  }

  /// Looks through all that is left, since such a pair is a cycle of two edges: none is shorter.
  bool say_inversions() {
    std::vector<Inversion> found;
    for (std::uint32_t d = 0; d < table_.devices(); ++d)
      for (std::uint32_t position = table_.first[d]; position < table_.first[d + 1]; ++position) {
        if (walk_.has_run(position)) continue;
        needs_.for_each(position, [&](std::uint32_t needed, std::uint16_t) {
          if (needed < table_.first[d + 1] && stands_before(position, needed)) add(found, position, needed);
        });
      }
    for (const Inversion& each : found) say_inversion(each);
    return !found.empty();
  }

  void add(std::vector<Inversion>& found, std::uint32_t position, std::uint32_t needed) const {
    const std::uint32_t kind = table_.ops.kind_of(op(position)).value;
    const std::uint32_t needed_kind = table_.ops.kind_of(op(needed)).value;
    const auto same = std::find_if(found.begin(), found.end(), [&](const Inversion& each) {
      return each.kind == kind && each.needed_kind == needed_kind;
    });
    if (same == found.end())
      found.push_back({kind, needed_kind, position, needed, 1});
    else
      ++same->count;
  }

  void say_inversion(const Inversion& each) {
    const OpKind& kind = table_.ops.kinds()[KindId(each.kind)];
    const OpKind& needed = table_.ops.kinds()[KindId(each.needed_kind)];
    const bool forward = needed.operation == Operation::Forward && kind.operation != Operation::Forward;
    const std::uint32_t microbatch = table_.ops.microbatch(op(each.position));
    Diagnostic diagnostic;
    diagnostic.kind = forward ? "backward-before-forward" : "runs-too-early";
    diagnostic.message =
        on(each.position) + " runs before " +
        (forward ? "its forward `" + cell_(op(each.needed)) + "`" : "`" + cell_(op(each.needed)) + "`, which it needs");
    const Origin here = origin(each.position);
    const Origin there = origin(each.needed);
    diagnostic.primary.span = here.span;
    diagnostic.primary.text = std::string(info(kind.operation).words);
    if (kind.operation == Operation::Declared) diagnostic.primary.text = "`" + kind.name + "`";
    if (microbatch != OpId::kNone) diagnostic.primary.text += " of microbatch " + std::to_string(microbatch);
    if (there.span.valid())
      diagnostic.labels.push_back({there.span, forward ? "its forward comes later" : "what it needs comes later"});
    if (!here.note.empty()) diagnostic.notes.push_back(here.note);
    if (each.count > 1)
      diagnostic.notes.push_back("and " + std::to_string(each.count - 1) + " more `" + kind.name + "` before `" +
                                 needed.name + "` in the same way");
    sink_.add(std::move(diagnostic));
  }

  void say_cycle(const std::vector<std::uint32_t>& cycle) {
    std::set<std::uint32_t> devices;
    for (std::uint32_t position : cycle)
      for (std::uint32_t member : members(position)) devices.insert(device(member).value);
    Diagnostic diagnostic;
    diagnostic.kind = "order-cycle";
    if (devices.size() == 1)
      diagnostic.message = "device " + std::to_string(*devices.begin()) + " waits for itself";
    else if (devices.size() == 2)
      diagnostic.message = "devices " + std::to_string(*devices.begin()) + " and " + std::to_string(*devices.rbegin()) +
                           " wait for each other";
    else
      diagnostic.message = std::to_string(devices.size()) + " devices wait for each other in a ring";
    std::set<std::tuple<std::uint32_t, std::uint32_t>> places;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      if (i == kMostLines) {
        diagnostic.notes.push_back("and so on: " + std::to_string(cycle.size()) + " edges in all");
        break;
      }
      const std::uint32_t position = cycle[i];
      const std::uint32_t before = cycle[(i + 1) % cycle.size()];
      diagnostic.notes.push_back(edge(position, before));
      const Origin here = origin(position);
      if (!here.span.valid() || !places.insert({here.span.begin, here.span.end}).second) continue;
      // The note names the device, and the loop values if there are any.
      Label label{here.span, here.note.empty() ? on(position) : "`" + cell_(op(position)) + "` " + here.note};
      if (diagnostic.primary.span.valid())
        diagnostic.labels.push_back(std::move(label));
      else
        diagnostic.primary = std::move(label);
    }
    sink_.add(std::move(diagnostic));
  }

  std::string edge(std::uint32_t position, std::uint32_t before) const {
    // Of what runs together, the one that is held back, and the one that holds it.
    for (std::uint32_t held : members(position)) {
      std::string which = on(held);
      if (held != position) which += ", which runs together with " + on(position) + ",";
      for (std::uint32_t holds : members(before)) {
        bool needs = false;
        needs_.for_each(held, [&](std::uint32_t needed, std::uint16_t) { needs = needs || needed == holds; });
        if (needs) return which + " needs " + on(holds);
        if (device(held) == device(holds) && stands_before(holds, held))
          return which + " stands behind `" + cell_(op(holds)) + "` there";
      }
    }
    return on(position) + " waits for " + on(before);
  }

  std::vector<std::uint32_t> members(std::uint32_t position) const {
    if (block_of_.empty() || block_of_[position] == UINT32_MAX) return {position};
    const auto all = table_.blocks[block_of_[position]];
    return {all.begin(), all.end()};
  }

  const Schedule& schedule_;
  const Table& table_;
  const Lanes& lanes_;
  const TableNeeds& needs_;
  const TableWalk& walk_;
  std::vector<std::uint32_t> block_of_;
  CellText cell_;
  Diagnostics& sink_;
};

}  // namespace

std::optional<RunOrder> verify_order(const Schedule& schedule, const Table& table, const TableNeeds& needs,
                                     Diagnostics& sink) {
  const Lanes lanes(table);
  std::optional<RunOrder> order = run_order(table, lanes, needs);
  if (order) return order;
  // Once more, for where it got stuck.
  TableWalk walk(table, lanes, needs);
  walk.run([](std::span<const std::uint32_t>) {});
  Explain(schedule, table, lanes, needs, walk, sink).say();
  return std::nullopt;
}

}  // namespace stave
