#include "core/program_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace stave {

namespace {

constexpr std::array<std::string_view, 6> kRoles = {"stage", "microbatch", "slice", "device", "other", "replica"};
constexpr std::array<std::string_view, 2> kNeeds = {"required", "optional"};

template <class File, class Kind>
void walk_kind(File& file, Kind& kind);

// Writer and Reader have the same functions, so that one walk describes the file: what the one writes the other reads.
class Writer {
 public:
  void word(std::string_view text) {
    if (!text_.empty() && text_.back() != '\n') text_ += ' ';
    text_ += text.empty() ? "\"\"" : text;
  }
  // A word that always stands here.
  void literal(std::string_view text) { word(text); }
  void number(std::uint64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    word(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }
  // A number that may be none.
  void optional(std::uint32_t value) {
    if (value == UINT32_MAX)
      word("-");
    else
      number(value);
  }
  template <class Id>
  void id(const Id& value) {
    optional(value.value);
  }
  // A value by its name, which stands at its place.
  template <class T, std::size_t kNames>
  void choice(const T& value, const std::array<std::string_view, kNames>& names, std::string_view) {
    word(names[static_cast<std::size_t>(value)]);
  }
  // Operations have names of two words, and so go by number.
  void operation(Operation value) { number(static_cast<std::uint64_t>(value)); }
  void op(OpId value, const OpSet&) { id(value); }
  void version(std::uint32_t value) {
    number(value);
    end_line();
  }
  void kinds(const OpSet& ops) {
    lines("kinds", ops.kinds(), [&](const OpKind& kind) { walk_kind(*this, kind); });
  }

  // A count and so many items on the line at hand.
  template <class Items, class Item>
  void items(const Items& all, const Item& item) {
    number(all.size());
    for (const auto& each : all) item(each);
  }
  // A section of its own: items without end ...
  template <class Items, class Item>
  void list(std::string_view name, const Items& all, const Item& item) {
    section(name, all.size());
    std::size_t written = 0;
    for (const auto& each : all) {
      item(each);
      if (++written % 16 == 0) end_line();
    }
    if (written % 16 != 0) end_line();
  }
  // ... items of a line each ...
  template <class Items, class Item>
  void lines(std::string_view name, const Items& all, const Item& item) {
    section(name, all.size());
    for (const auto& each : all) {
      item(each);
      end_line();
    }
  }
  // ... or rows of items.
  template <class T, class Item>
  void rows(std::string_view name, const Rows<T>& all, const Item& item) {
    section(name, all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      items(all[i], item);
      end_line();
    }
  }
  std::string take() { return std::move(text_); }

 private:
  void end_line() { text_ += '\n'; }
  void section(std::string_view name, std::size_t count) {
    word(name);
    number(count);
    end_line();
  }

  std::string text_;
};

// Words of a text, with the line they stand on. The first thing that is wrong stays.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool failed() const { return failure_.has_value(); }
  Failure failure() const { return *failure_; }
  void word(std::string& text) {
    const std::string_view found = next();
    text = found == "\"\"" ? std::string() : std::string(found);
  }
  void literal(std::string_view due) {
    const std::string_view found = next();
    if (!failed() && found != due) fail(quoted(found) + " stands where " + quoted(due) + " is due");
  }
  template <class T>
  void number(T& value) {
    value = static_cast<T>(read_number(kMost<T>));
  }
  void optional(std::uint32_t& value) {
    if (peek() != "-") return number(value);
    next();
    value = UINT32_MAX;
  }
  template <class Id>
  void id(Id& value) {
    std::uint32_t read = 0;
    number(read);
    value = Id(read);
  }
  template <class T, std::size_t kNames>
  void choice(T& value, const std::array<std::string_view, kNames>& names, std::string_view what) {
    const std::string_view found = next();
    const auto at = std::ranges::find(names, found);
    if (failed()) return;
    if (at == names.end()) return fail(std::string(what) + " " + quoted(found));
    value = static_cast<T>(at - names.begin());
  }
  void operation(Operation& value) { value = static_cast<Operation>(read_number(kOperations.size() - 1)); }
  void op(OpId& value, const OpSet& ops) {
    id(value);
    if (!failed() && value.value >= ops.size()) fail("no kind has an op " + std::to_string(value.value));
  }
  void version(std::uint32_t due) {
    std::uint32_t found = 0;
    number(found);
    if (!failed() && found != due)
      fail("the file has version " + std::to_string(found) + "; this program reads version " + std::to_string(due));
  }
  void kinds(OpSet& ops) {
    std::vector<OpKind> unused;
    lines("kinds", unused, [&](OpKind& kind) {
      walk_kind(*this, kind);
      if (!failed()) add(kind, ops);
    });
  }

  template <class T, class Item>
  void items(std::vector<T>& all, const Item& item) {
    read_items(count(), all, item);
  }
  template <class T, class Item>
  void list(std::string_view name, std::vector<T>& all, const Item& item) {
    const std::size_t size = section(name);
    all.reserve(size);
    read_items(size, all, item);
  }
  template <class Items, class Item>
  void lines(std::string_view name, Items& all, const Item& item) {
    read_items(section(name), all, item);
  }
  template <class T, class Item>
  void rows(std::string_view name, Rows<T>& all, const Item& item) {
    const std::size_t size = section(name);
    for (std::size_t i = 0; i < size && !failed(); ++i) {
      read_items(count(), all.items, item);
      if (all.items.size() >= UINT32_MAX) return fail("too many numbers");
      all.end_row();
    }
  }
  void end() {
    if (!failed() && rest_.find_first_not_of(" \n\r") != std::string_view::npos)
      fail("something stands after the end");
  }

 private:
  // An id of 32 bits has one value that means none.
  template <class T>
  static constexpr std::uint64_t kMost = sizeof(T) < 4 ? std::numeric_limits<T>::max() : UINT32_MAX - 1;

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
  std::string_view peek() const {
    const std::size_t begin = rest_.find_first_not_of(" \n\r");
    if (begin == std::string_view::npos) return {};
    const std::string_view from = rest_.substr(begin);
    return from.substr(0, from.find_first_of(" \n\r"));
  }
  std::uint64_t read_number(std::uint64_t most) {
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
  // Every item takes two characters at least.
  std::size_t count() {
    const std::uint64_t value = read_number(UINT32_MAX - 1);
    if (value <= rest_.size() / 2 + 1) return static_cast<std::size_t>(value);
    fail("the file is too short for a count of " + std::to_string(value));
    return 0;
  }
  std::size_t section(std::string_view name) {
    literal(name);
    return count();
  }
  void add(const OpKind& kind, OpSet& ops) {
    if (kind.indices.size() > kMaxIndices) return fail("an op has too many indices");
    for (const KindId part : kind.parts) {
      if (part.value >= ops.kinds().size()) return fail("a fused op has a part that is not declared before it");
      const auto same = [](const OpIndex& a, const OpIndex& b) { return a.role == b.role && a.extent == b.extent; };
      if (!std::ranges::equal(ops.kinds()[part].indices, kind.indices, same))
        return fail("a fused op has other indices than its part");
    }
    if (!ops.add(kind)) fail("there are too many ops");
  }
  template <class Items, class Item>
  void read_items(std::size_t size, Items& all, const Item& item) {
    for (std::size_t i = 0; i < size && !failed(); ++i) {
      std::remove_cvref_t<decltype(*all.begin())> each{};
      item(each);
      all.push_back(std::move(each));
    }
  }
  static std::string quoted(std::string_view text) {
    std::string result = "'";
    for (char c : text.substr(0, 40)) result += c >= ' ' && c < 127 ? c : '?';
    return result + "'";
  }

  std::string_view rest_;
  std::size_t line_ = 1;
  std::optional<Failure> failure_;
};

// What a file says, in its order: the one description of the format. `program` is const for the Writer.
template <class File, class Kind>
void walk_kind(File& file, Kind& kind) {
  file.word(kind.name);
  file.operation(kind.operation);
  file.choice(kind.optional, kNeeds, "an op is 'required' or 'optional', not");
  file.word(kind.stream);
  file.literal("parts");
  file.items(kind.parts, [&](auto& part) { file.id(part); });
  file.literal("indices");
  file.items(kind.indices, [&](auto& index) {
    file.word(index.name);
    file.choice(index.role, kRoles, "an index has no role");
    file.number(index.extent);
  });
}

template <class File, class AProgram>
void walk(File& file, AProgram& program) {
  const auto number = [&](auto& value) { file.number(value); };
  const auto optional = [&](auto& value) { file.optional(value); };
  const auto id = [&](auto& value) { file.id(value); };
  const auto use = [&](auto& value) {
    file.optional(value.slot);
    file.number(value.payload);
  };
  file.literal(kProgramMagic);
  file.version(kProgramVersion);
  file.list("payloads", program.payloads, [&](auto& payload) { file.word(payload); });
  file.kinds(program.table.ops);
  file.list("entries", program.table.entries, [&](auto& op) { file.op(op, program.table.ops); });
  file.list("devices", program.table.first, number);
  file.rows("blocks", program.table.blocks, number);
  file.list("stage-layers", program.sizes.stages, number);
  file.list("microbatch-tokens", program.sizes.microbatches, number);
  file.lines("slice-tokens", program.sizes.slices, [&](auto& row) { file.items(row, number); });
  file.list("edges", program.edges, [&](auto& edge) {
    file.id(edge.source);
    file.id(edge.target);
  });
  file.list("messages", program.messages, [&](auto& message) {
    file.number(message.producer);
    file.number(message.consumer);
    file.number(message.last_consumer);
    file.id(message.edge);
    file.optional(message.out_slot);
    file.optional(message.in_slot);
    file.number(message.payload);
  });
  file.list("order", program.order, id);
  file.rows("issue", program.issue, id);
  file.rows("waits", program.waits, id);
  file.rows("reads", program.reads, use);
  file.rows("writes", program.writes, use);
  file.list("stash", program.stash, optional);
  file.list("reads-version", program.reads_version, optional);
  file.list("makes-version", program.makes_version, optional);
  file.lines("slots", program.slots, [&](auto& slots) {
    file.number(slots.stash);
    file.items(slots.by_payload, number);
  });
}

}  // namespace

std::string write_program(const Program& program) {
  Writer out;
  walk(out, program);
  return out.take();
}

Result<Program> read_program(std::string_view text) {
  if (!text.starts_with(kProgramMagic))
    return Failure{"this is no program file: it does not begin with " + std::string(kProgramMagic)};
  Reader in(text);
  Program program;
  program.payloads.clear();
  program.table.first.clear();
  walk(in, program);
  in.end();
  if (in.failed()) return in.failure();
  if (program.table.first.empty()) return Failure{"there is no device"};
  return program;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace stave
