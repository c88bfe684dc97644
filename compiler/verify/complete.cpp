// Every op once, on its own device.
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/cell_text.h"
#include "compiler/expansion.h"
#include "compiler/verify.h"
#include "compiler/verify/op_bits.h"
#include "core/check.h"

namespace stave {

namespace {

/// Ops of one kind that are wrong in one way: the first is shown, the others are counted.
struct Group {
  std::uint32_t count = 0;
  std::uint32_t position = 0;
};

class Complete {
 public:
  Complete(const Schedule& schedule, const Table& table, Diagnostics& sink)
      : schedule_(schedule),
        table_(table),
        sink_(sink),
        parts_(table.ops),
        stands_(table.ops.size()),
        repeated_(table.ops.kinds().size()),
        elsewhere_(table.ops.kinds().size()),
        unknown_(table.ops.kinds().size()) {}

  bool check() {
    const std::size_t before = sink_.errors();
    look_at_entries();
    for (std::uint32_t k = 0; k < repeated_.size(); ++k) {
      if (unknown_[k].count > 0) say_unknown(unknown_[k]);
      if (elsewhere_[k].count > 0) say_elsewhere(elsewhere_[k]);
      if (repeated_[k].count > 0) say_repeated(repeated_[k]);
    }
    look_for_missing();
    look_for_idle_devices();
    return sink_.errors() == before;
  }

 private:
  const CellText& cell() {
    if (!cell_) cell_.emplace(schedule_);
    return *cell_;
  }

  void look_at_entries() {
    for (std::uint32_t d = 0; d < table_.devices(); ++d) {
      for (std::uint32_t position = table_.first[d]; position < table_.first[d + 1]; ++position) {
        const OpId op = table_.entries[position];
        const auto note = [&](std::vector<Group>& groups) {
          Group& group = groups[table_.ops.kind_of(op).value];
          if (group.count++ == 0) group.position = position;
        };
        if (!schedule_.op_exists(op)) {
          note(unknown_);
          continue;
        }
        if (schedule_.device_of[op.value] != d) note(elsewhere_);
        bool again = false;
        parts_.for_each(op, [&](std::uint32_t part) {
          again = again || stands_[part];
          stands_.set(part);
        });
        if (again) note(repeated_);
      }
    }
  }

  Diagnostic about(std::string_view kind, std::uint32_t position, std::uint32_t occurrence, const Group& group) {
    Diagnostic diagnostic;
    diagnostic.kind = kind;
    if (schedule_.origins) {
      const Origin origin = schedule_.origins->of(table_.device_of(position), table_.entries[position], occurrence);
      diagnostic.primary.span = origin.span;
      if (!origin.note.empty()) diagnostic.notes.push_back(origin.note);
    }
    if (group.count > 1)
      diagnostic.notes.push_back("and " + std::to_string(group.count - 1) + " more `" +
                                 table_.ops.kind(table_.entries[position]).name + "` in the same way");
    return diagnostic;
  }

  void say_unknown(const Group& group) {
    Diagnostic diagnostic = about("foreign-op", group.position, 0, group);
    diagnostic.message = "there is no op `" + table_.ops.text(table_.entries[group.position]) + "` in this schedule";
    sink_.add(std::move(diagnostic));
  }

  void say_elsewhere(const Group& group) {
    const OpId op = table_.entries[group.position];
    Diagnostic diagnostic = about("wrong-device", group.position, 0, group);
    diagnostic.message = cell().on(op, table_.device_of(group.position)) + " belongs on device " +
                         std::to_string(schedule_.device_of[op.value]);
    const std::uint32_t stage = table_.ops.stage(op);
    if (stage != OpId::kNone)
      diagnostic.primary.text =
          "stage " + std::to_string(stage) + " is placed on device " + std::to_string(schedule_.device_of[op.value]);
    sink_.add(std::move(diagnostic));
  }

  void say_repeated(const Group& group) {
    const OpId op = table_.entries[group.position];
    std::uint32_t first = 0;
    OpId twice;
    for (; first < group.position && !twice.valid(); ++first)
      parts_.for_each(table_.entries[first], [&](std::uint32_t part) {
        parts_.for_each(op, [&](std::uint32_t mine) { twice = mine == part ? OpId(mine) : twice; });
      });
    --first;
    const DeviceId here = table_.device_of(group.position);
    const DeviceId there = table_.device_of(first);
    Diagnostic diagnostic = about("repeated-op", group.position, here == there ? 1 : 0, group);
    if (table_.entries[first] == op && here == there)
      diagnostic.message = cell().on(op, here) + " stands there twice";
    else if (table_.entries[first] == op)
      diagnostic.message = cell().on(op, here) + " stands on device " + std::to_string(there.value) + " already";
    else
      diagnostic.message = cell().on(op, here) + " runs `" + table_.ops.text(twice) + "`, which " +
                           cell().on(table_.entries[first], there) + " has run already";
    diagnostic.primary.text = "the second time";
    if (schedule_.origins)
      diagnostic.labels.push_back({schedule_.origins->of(there, table_.entries[first]).span, "the first time"});
    sink_.add(std::move(diagnostic));
  }

  bool is_missing(std::uint32_t op) const { return schedule_.op_exists(OpId(op)) && !stands_[op]; }

  /// Missing ops kind by kind; those of a fused kind that lack all their parts are named by the whole.
  void look_for_missing() {
    const auto whole = [&](const OpKind& kind) {
      return kind.optional || !kind.parts.empty() || stands_.all(kind.first, kind.count);
    };
    if (std::all_of(table_.ops.kinds().begin(), table_.ops.kinds().end(), whole)) return;
    std::vector<std::vector<bool>> said(table_.ops.kinds().size());
    for (std::uint32_t k = 0; k < table_.ops.kinds().size(); ++k) {
      const OpKind& kind = table_.ops.kinds()[KindId(k)];
      if (kind.parts.empty()) continue;
      say_missing(kind, [&](std::uint32_t i) {
        return schedule_.op_exists(OpId(kind.first + i)) && parts_.all(OpId(kind.first + i), [&](std::uint32_t part) {
          const std::uint32_t whose = table_.ops.kind_of(OpId(part)).value;
          return is_missing(part) && (said[whose].empty() || !said[whose][i]) &&
                 !table_.ops.kinds()[KindId(whose)].optional;
        });
      });
      for (std::uint32_t i = 0; i < kind.count; ++i)
        if (parts_.all(OpId(kind.first + i), [&](std::uint32_t part) { return is_missing(part); }))
          for (KindId part : kind.parts) {
            said[part.value].resize(kind.count, false);
            said[part.value][i] = true;
          }
    }
    for (std::uint32_t k = 0; k < table_.ops.kinds().size(); ++k) {
      const OpKind& kind = table_.ops.kinds()[KindId(k)];
      if (!kind.parts.empty() || kind.optional) continue;
      say_missing(kind,
                  [&](std::uint32_t i) { return is_missing(kind.first + i) && (said[k].empty() || !said[k][i]); });
    }
  }

  template <class Missing>
  void say_missing(const OpKind& kind, Missing&& missing) {
    std::uint32_t count = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < kind.count; ++i) {
      if (!missing(i)) continue;
      if (count++ == 0) first = i;
      last = i;
    }
    if (count == 0) return;
    const OpId op(kind.first + first);
    const DeviceId device(schedule_.device_of[op.value]);
    Diagnostic diagnostic;
    diagnostic.kind = "missing-op";
    diagnostic.message = count == 1
                             ? "`" + table_.ops.text(op) + "` is missing on device " + std::to_string(device.value)
                             : std::to_string(count) + " ops are missing: `" + table_.ops.text(op) + "`" +
                                   (count == 2 ? " and `" : " .. `") + table_.ops.text(OpId(kind.first + last)) + "`";
    diagnostic.notes.push_back("every op runs once; device " + std::to_string(device.value) + " has " +
                               std::to_string(table_.on(device).size()) + " ops, and `" + table_.ops.text(op) +
                               "` is not among them");
    point_near(diagnostic, kind, device);
    sink_.add(std::move(diagnostic));
  }

  /// What is missing has no place of its own: shows the last op like it, or the last op, of its device.
  void point_near(Diagnostic& diagnostic, const OpKind& kind, DeviceId device) {
    const auto row = table_.on(device);
    if (!schedule_.origins || row.empty()) return;
    OpId near = row.back();
    for (OpId op : row)
      if (op.value >= kind.first && op.value < kind.first + kind.count) near = op;
    diagnostic.primary.span = schedule_.origins->of(device, near).span;
    diagnostic.primary.text =
        "the last `" + table_.ops.kind(near).name + "` of device " + std::to_string(device.value) + " comes from here";
  }

  void look_for_idle_devices() {
    const auto has_work = [&](std::uint32_t d) {
      const auto row = table_.on(DeviceId(d));
      return !row.empty() && schedule_.device_of[row[0].value] == d && !table_.ops.kind(row[0]).optional;
    };
    std::vector<bool> works(table_.devices(), false);
    for (std::uint32_t d = 0; d < table_.devices(); ++d) works[d] = has_work(d);
    if (std::find(works.begin(), works.end(), false) == works.end()) return;
    for (const OpKind& kind : table_.ops.kinds())
      for (std::uint32_t op = kind.first; op < kind.first + kind.count && !kind.optional; ++op)
        if (schedule_.op_exists(OpId(op))) works[schedule_.device_of[op]] = true;
    std::uint32_t count = 0;
    std::uint32_t first = 0;
    for (std::uint32_t d = 0; d < table_.devices(); ++d)
      if (!works[d] && count++ == 0) first = d;
    if (count == 0) return;
    Diagnostic diagnostic;
    diagnostic.kind = "idle-device";
    diagnostic.message = "no op must run on device " + std::to_string(first) +
                         (count > 1 ? ", nor on " + std::to_string(count - 1) + " more" : "");
    if (schedule_.expansion) {
      const Code& code = *schedule_.expansion->code;
      const std::optional<SettingCode>& devices = code.settings[static_cast<std::size_t>(SettingKind::Devices)];
      // Of a CSV table nobody wrote the settings.
      const bool written = code.table == nullptr || code.table->source == code.source;
      if (devices && written)
        diagnostic.primary = {devices->span, "this makes " + std::to_string(schedule_.devices) + " devices"};
    }
    diagnostic.notes.push_back("there are " + std::to_string(schedule_.devices) + " devices and " +
                               std::to_string(schedule_.stages) + " stages; every device needs a stage");
    sink_.add(std::move(diagnostic));
  }

  const Schedule& schedule_;
  const Table& table_;
  Diagnostics& sink_;
  Parts parts_;
  OpBits stands_;
  /// By kind.
  std::vector<Group> repeated_;
  std::vector<Group> elsewhere_;
  std::vector<Group> unknown_;
  std::optional<CellText> cell_;
};

}  // namespace

bool verify_complete(const Schedule& schedule, const Table& table, Diagnostics& sink) {
  STAVE_CHECK(table.devices() == schedule.devices, "a table with other devices than its schedule");
  return Complete(schedule, table, sink).check();
}

bool verify(const Schedule& schedule, const Table& table, Diagnostics& sink) {
  return verify_complete(schedule, table, sink) && verify_order(schedule, table, TableNeeds(schedule, table), sink);
}

}  // namespace stave
