#include "core/program_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace stave {

namespace {

constexpr std::array<std::string_view, 6> kRoles = {"stage", "microbatch", "slice", "device", "other", "replica"};

class Writer {
 public:
  void word(std::string_view text) {
    if (text_.empty() || text_.back() == '\n') {
      text_ += text.empty() ? "\"\"" : text;
      return;
    }
    text_ += ' ';
    text_ += text.empty() ? "\"\"" : text;
  }
  void number(std::uint64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    word(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }
  // An id or a slot that is none.
  void optional(std::uint32_t value) {
    if (value == UINT32_MAX)
      word("-");
    else
      number(value);
  }
  void line() { text_ += '\n'; }
  void section(std::string_view name, std::size_t count) {
    word(name);
    number(count);
    line();
  }
  template <class Items, class Write>
  void list(std::string_view name, const Items& items, const Write& write) {
    section(name, items.size());
    std::size_t on_line = 0;
    for (const auto& item : items) {
      write(item);
      if (++on_line % 16 == 0) line();
    }
    if (on_line % 16 != 0) line();
  }
  template <class T, class Write>
  void rows(std::string_view name, const Rows<T>& rows, const Write& write) {
    section(name, rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      number(rows[i].size());
      for (const T& item : rows[i]) write(item);
      line();
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_kinds(Writer& out, const OpSet& ops) {
  out.section("kinds", ops.kinds().size());
  for (const OpKind& kind : ops.kinds()) {
    out.word(kind.name);
    // Words, as "input gradient" is two.
    out.number(static_cast<std::uint64_t>(kind.operation));
    out.word(kind.optional ? "optional" : "required");
    out.word(kind.stream);
    out.word("parts");
    out.number(kind.parts.size());
    for (KindId part : kind.parts) out.number(part.value);
    out.word("indices");
    out.number(kind.indices.size());
    for (const OpIndex& index : kind.indices) {
      out.word(index.name);
      out.word(kRoles[static_cast<std::size_t>(index.role)]);
      out.number(index.extent);
    }
    out.line();
  }
}

// Words of a text, with the line they stand on. The first thing that is wrong stays.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool failed() const { return failure_.has_value(); }
  Failure failure() const { return *failure_; }
  void fail(const std::string& what) {
    if (!failure_) failure_ = Failure{"line " + std::to_string(line_) + ": " + what};
  }

  std::string_view next() {
    if (failed()) return {};
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\r')) {
      line_ += rest_.front() == '\n';
      rest_.remove_prefix(1);
    }
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \n\r"));
    rest_.remove_prefix(word.size());
    if (word.empty()) fail("the file ends too early");
    return word;
  }
  std::string word() {
    const std::string_view text = next();
    return text == "\"\"" ? std::string() : std::string(text);
  }
  void expect(std::string_view due) {
    const std::string_view found = next();
    if (!failed() && found != due) fail(quoted(found) + " stands where " + quoted(due) + " is due");
  }
  std::uint64_t number(std::uint64_t most) {
    const std::string_view text = next();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed()) return 0;
    if (error != std::errc() || end != text.data() + text.size() || value > most) {
      fail(quoted(text) + " stands where a number up to " + std::to_string(most) + " is due");
      return 0;
    }
    return value;
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(UINT32_MAX - 1)); }
  std::uint32_t optional() {
    if (peek() != "-") return number32();
    next();
    return UINT32_MAX;
  }
  // Every item takes two characters at least.
  std::size_t count() {
    const std::uint64_t value = number(UINT32_MAX - 1);
    if (value <= rest_.size() / 2 + 1) return static_cast<std::size_t>(value);
    fail("the file is too short for a count of " + std::to_string(value));
    return 0;
  }
  std::size_t section(std::string_view name) {
    expect(name);
    return count();
  }
  template <class T, class Read>
  void list(std::string_view name, std::vector<T>& items, const Read& read) {
    const std::size_t size = section(name);
    items.reserve(size);
    for (std::size_t i = 0; i < size && !failed(); ++i) items.push_back(read());
  }
  template <class T, class Read>
  void rows(std::string_view name, Rows<T>& rows, const Read& read) {
    const std::size_t size = section(name);
    for (std::size_t i = 0; i < size && !failed(); ++i) {
      const std::size_t length = count();
      for (std::size_t k = 0; k < length && !failed(); ++k) rows.items.push_back(read());
      if (rows.items.size() >= UINT32_MAX) return fail("too many numbers");
      rows.end_row();
    }
  }
  void end() {
    if (failed()) return;
    if (rest_.find_first_not_of(" \n\r") != std::string_view::npos) fail("something stands after the end");
  }

 private:
  static std::string quoted(std::string_view text) {
    std::string result = "'";
    for (char c : text.substr(0, 40)) result += c >= ' ' && c < 127 ? c : '?';
    return result + "'";
  }
  std::string_view peek() const {
    const std::size_t begin = rest_.find_first_not_of(" \n\r");
    if (begin == std::string_view::npos) return {};
    const std::string_view from = rest_.substr(begin);
    return from.substr(0, from.find_first_of(" \n\r"));
  }

  std::string_view rest_;
  std::size_t line_ = 1;
  std::optional<Failure> failure_;
};

OpIndex read_index(Reader& in) {
  OpIndex index;
  index.name = in.word();
  const std::string role = in.word();
  const auto at = std::ranges::find(kRoles, role);
  if (!in.failed() && at == kRoles.end()) in.fail("an index has no role '" + role.substr(0, 40) + "'");
  index.role = static_cast<IndexRole>(at - kRoles.begin());
  index.extent = in.number32();
  return index;
}

void read_kinds(Reader& in, OpSet& ops) {
  const std::size_t size = in.section("kinds");
  for (std::size_t k = 0; k < size && !in.failed(); ++k) {
    OpKind kind;
    kind.name = in.word();
    kind.operation = static_cast<Operation>(in.number(kOperations.size() - 1));
    const std::string optional = in.word();
    if (!in.failed() && optional != "optional" && optional != "required")
      return in.fail("an op is 'optional' or 'required', not '" + optional.substr(0, 40) + "'");
    kind.optional = optional == "optional";
    kind.stream = in.word();
    in.expect("parts");
    const std::size_t parts = in.count();
    for (std::size_t i = 0; i < parts && !in.failed(); ++i) {
      const std::uint32_t part = in.number32();
      if (part >= k) return in.fail("a fused op has a part that is not declared before it");
      kind.parts.push_back(KindId(part));
    }
    in.expect("indices");
    const std::size_t indices = in.count();
    if (indices > kMaxIndices) return in.fail("an op has too many indices");
    for (std::size_t i = 0; i < indices && !in.failed(); ++i) kind.indices.push_back(read_index(in));
    for (KindId part : kind.parts) {
      const std::vector<OpIndex>& theirs = ops.kinds()[part].indices;
      const auto same = [](const OpIndex& a, const OpIndex& b) { return a.role == b.role && a.extent == b.extent; };
      if (!std::ranges::equal(theirs, kind.indices, same)) return in.fail("a fused op has other indices than its part");
    }
    if (!in.failed() && !ops.add(std::move(kind))) return in.fail("there are too many ops");
  }
}

}  // namespace

std::string write_program(const Program& program) {
  Writer out;
  const auto number = [&](std::uint64_t value) { out.number(value); };
  const auto optional = [&](std::uint32_t value) { out.optional(value); };
  const auto id = [&](auto value) { out.optional(value.value); };
  const auto use = [&](const SlotUse& value) {
    out.optional(value.slot);
    out.number(value.payload);
  };
  out.word(kProgramMagic);
  out.number(kProgramVersion);
  out.line();
  out.list("payloads", program.payloads, [&](const std::string& payload) { out.word(payload); });
  write_kinds(out, program.table.ops);
  out.list("entries", program.table.entries, id);
  out.list("devices", program.table.first, number);
  out.rows("blocks", program.table.blocks, number);
  out.list("stage-layers", program.sizes.stages, number);
  out.list("microbatch-tokens", program.sizes.microbatches, number);
  Rows<std::uint32_t> slices;
  for (const std::vector<std::uint32_t>& row : program.sizes.slices) {
    slices.items.insert(slices.items.end(), row.begin(), row.end());
    slices.end_row();
  }
  out.rows("slice-tokens", slices, number);
  out.list("edges", program.edges, [&](const Edge& edge) {
    id(edge.source);
    id(edge.target);
  });
  out.list("messages", program.messages, [&](const Message& m) {
    for (std::uint32_t value : {m.producer, m.consumer, m.last_consumer, m.edge.value, m.out_slot, m.in_slot})
      out.optional(value);
    out.number(m.payload);
  });
  out.list("order", program.order, id);
  out.rows("issue", program.issue, id);
  out.rows("waits", program.waits, id);
  out.rows("reads", program.reads, use);
  out.rows("writes", program.writes, use);
  out.list("stash", program.stash, optional);
  out.list("reads-version", program.reads_version, optional);
  out.list("makes-version", program.makes_version, optional);
  out.section("slots", program.slots.size());
  for (const Program::Slots& slots : program.slots) {
    out.number(slots.stash);
    out.number(slots.by_payload.size());
    for (std::uint32_t count : slots.by_payload) out.number(count);
    out.line();
  }
  return out.take();
}

Result<Program> read_program(std::string_view text) {
  Reader in(text);
  Program program;
  const auto number = [&] { return in.number32(); };
  const auto optional = [&] { return in.optional(); };
  const auto payload = [&] { return static_cast<std::uint16_t>(in.number(UINT16_MAX)); };
  const auto node = [&] { return NodeId(in.number32()); };
  const auto use = [&] {
    const std::uint32_t slot = in.optional();
    return SlotUse{slot, payload()};
  };
  in.expect(kProgramMagic);
  if (in.failed()) return Failure{"this is no program file: it does not begin with " + std::string(kProgramMagic)};
  if (const std::uint64_t version = in.number(UINT32_MAX - 1); !in.failed() && version != kProgramVersion)
    in.fail("the file has version " + std::to_string(version) + "; this program reads version " +
            std::to_string(kProgramVersion));
  program.payloads.clear();
  in.list("payloads", program.payloads, [&] { return in.word(); });
  read_kinds(in, program.table.ops);
  in.list("entries", program.table.entries, [&] {
    const std::uint32_t op = in.number32();
    if (!in.failed() && op >= program.table.ops.size()) in.fail("no kind has an op " + std::to_string(op));
    return OpId(op);
  });
  program.table.first.clear();
  in.list("devices", program.table.first, number);
  if (!in.failed() && program.table.first.empty()) in.fail("there is no device");
  in.rows("blocks", program.table.blocks, number);
  in.list("stage-layers", program.sizes.stages, number);
  in.list("microbatch-tokens", program.sizes.microbatches, number);
  Rows<std::uint32_t> slices;
  in.rows("slice-tokens", slices, number);
  for (std::size_t i = 0; i < slices.size() && !in.failed(); ++i)
    program.sizes.slices.emplace_back(slices[i].begin(), slices[i].end());
  in.list("edges", program.edges, [&] {
    const std::uint32_t source = in.number32();
    return Edge{DeviceId(source), DeviceId(in.number32())};
  });
  in.list("messages", program.messages, [&] {
    Message m;
    m.producer = in.number32();
    m.consumer = in.number32();
    m.last_consumer = in.number32();
    m.edge = EdgeId(in.number32());
    m.out_slot = in.optional();
    m.in_slot = in.optional();
    m.payload = payload();
    return m;
  });
  in.list("order", program.order, node);
  in.rows("issue", program.issue, node);
  in.rows("waits", program.waits, node);
  in.rows("reads", program.reads, use);
  in.rows("writes", program.writes, use);
  in.list("stash", program.stash, optional);
  in.list("reads-version", program.reads_version, optional);
  in.list("makes-version", program.makes_version, optional);
  const std::size_t devices = in.section("slots");
  for (std::size_t d = 0; d < devices && !in.failed(); ++d) {
    Program::Slots slots;
    slots.stash = in.number32();
    const std::size_t payloads = in.count();
    for (std::size_t i = 0; i < payloads && !in.failed(); ++i) slots.by_payload.push_back(in.number32());
    program.slots.push_back(std::move(slots));
  }
  in.end();
  if (in.failed()) return in.failure();
  return program;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace stave
