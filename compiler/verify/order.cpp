// Whether the devices, each running its row in order, come to the end; and if not, why.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/cell_text.h"
#include "compiler/table_needs.h"
#include "compiler/verify.h"
#include "compiler/verify/blocked.h"
#include "compiler/verify/op_bits.h"

namespace stave {

namespace {

/// Most edges of a cycle that are written out.
constexpr std::size_t kMostLines = 24;

/// Runs the rows without times: a device goes on until an op is missing, and sleeps until that has run.
class Run {
 public:
  Run(const Schedule& schedule, const Table& table)
      : schedule_(schedule),
        table_(table),
        parts_(table.ops),
        stands_(table.ops.size()),
        done_(table.ops.size()),
        wanted_(table.ops.size()),
        heads_(table.first.begin(), table.first.end() - 1),
        wants_(table.devices(), kNobody),
        next_sleeper_(table.devices(), kNobody) {
    while ((std::size_t(1) << bucket_bits_) < 2 * std::size_t(table.devices())) ++bucket_bits_;
    sleepers_.assign(std::size_t(1) << bucket_bits_, kNobody);
    for (OpId op : table.entries) parts_.for_each(op, [&](std::uint32_t part) { stands_.set(part); });
  }

  /// True if every device came to its end; else `heads` are where they stopped.
  bool finishes() {
    for (std::uint32_t d = table_.devices(); d-- > 0;) runnable_.push_back(d);
    while (!runnable_.empty()) {
      const std::uint32_t d = runnable_.back();
      runnable_.pop_back();
      run(d);
    }
    for (std::uint32_t d = 0; d < table_.devices(); ++d)
      if (heads_[d] < table_.first[d + 1]) return false;
    return true;
  }
  const std::vector<std::uint32_t>& heads() const { return heads_; }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  void run(std::uint32_t d) {
    for (; heads_[d] < table_.first[d + 1]; ++heads_[d]) {
      const OpId op = table_.entries[heads_[d]];
      std::uint32_t missing = kNobody;
      const bool ready = parts_.all(op, [&](std::uint32_t part) {
        for (const Dependency& need : schedule_.needs[part]) {
          if (done_[need.op.value] || runs(op, need.op.value) || !stands_[need.op.value]) continue;
          missing = need.op.value;
          return false;
        }
        return true;
      });
      if (!ready) return sleep(d, missing);
      parts_.for_each(op, [&](std::uint32_t part) {
        done_.set(part);
        if (wanted_[part]) wake(part);
      });
    }
  }

  bool runs(OpId op, std::uint32_t part) const {
    return !parts_.all(op, [&](std::uint32_t mine) { return mine != part; });
  }

  /// Ops of neighbouring stages lie a round number apart, so the low bits alone would make one long chain.
  std::size_t bucket_of(std::uint32_t op) const { return (op * 0x9E3779B9u) >> (32 - bucket_bits_); }

  void sleep(std::uint32_t d, std::uint32_t op) {
    wants_[d] = op;
    wanted_.set(op);
    std::uint32_t& bucket = sleepers_[bucket_of(op)];
    next_sleeper_[d] = bucket;
    bucket = d;
  }

  void wake(std::uint32_t op) {
    std::uint32_t* link = &sleepers_[bucket_of(op)];
    while (*link != kNobody) {
      const std::uint32_t d = *link;
      if (wants_[d] != op) {
        link = &next_sleeper_[d];
        continue;
      }
      *link = next_sleeper_[d];
      runnable_.push_back(d);
    }
  }

  const Schedule& schedule_;
  const Table& table_;
  Parts parts_;
  OpBits stands_;
  OpBits done_;
  OpBits wanted_;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> runnable_;
  /// The op each sleeping device wants; devices whose ops fall into one bucket are a chain.
  std::vector<std::uint32_t> wants_;
  int bucket_bits_ = 1;
  std::vector<std::uint32_t> sleepers_;
  std::vector<std::uint32_t> next_sleeper_;
};

/// Says why a table that got stuck did.
class Explain {
 public:
  Explain(const Schedule& schedule, const Table& table, const std::vector<std::uint32_t>& heads, Diagnostics& sink)
      : schedule_(schedule), table_(table), heads_(heads), needs_(schedule, table), cell_(schedule), sink_(sink) {}

  void say() {
    if (!say_inversions()) say_cycle(shortest_cycle(Blocked(table_, needs_, heads_), heads_));
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

  /// Looks through all that is left, since such a pair is a cycle of two edges: none is shorter.
  bool say_inversions() {
    std::vector<Inversion> found;
    for (std::uint32_t d = 0; d < table_.devices(); ++d)
      for (std::uint32_t position = heads_[d]; position < table_.first[d + 1]; ++position)
        needs_.for_each(position, [&](std::uint32_t needed, std::uint16_t) {
          if (needed > position && needed < table_.first[d + 1]) add(found, position, needed);
        });
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
    for (std::uint32_t position : cycle) devices.insert(device(position).value);
    Diagnostic diagnostic;
    diagnostic.kind = "order-cycle";
    if (devices.size() == 2)
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
    bool needs = false;
    needs_.for_each(position, [&](std::uint32_t needed, std::uint16_t) { needs = needs || needed == before; });
    return needs ? on(position) + " needs " + on(before)
                 : on(position) + " stands behind `" + cell_(op(before)) + "` there";
  }

  const Schedule& schedule_;
  const Table& table_;
  const std::vector<std::uint32_t>& heads_;
  TableNeeds needs_;
  CellText cell_;
  Diagnostics& sink_;
};

}  // namespace

bool verify_order(const Schedule& schedule, const Table& table, Diagnostics& sink) {
  Run run(schedule, table);
  if (run.finishes()) return true;
  Explain(schedule, table, run.heads(), sink).say();
  return false;
}

}  // namespace stave
