// TOML: a file of costs, of a cluster or of a model as a tree of values, each with its place in the text.
// What the keys mean is for others; TomlReader is how they ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/rational.h"
#include "compiler/source.h"

namespace stave {

struct TomlMember;

struct TomlValue {
  enum class Kind : std::uint8_t { Table, Array, Text, Number, Truth, Date };
  Kind kind = Kind::Table;
  /// A table written under a header has the place of that header.
  Span span;
  /// Of a text what it holds, of a number how it is written.
  std::string text;
  /// Of a number: infinite, or none, where it is written so.
  double number = 0;
  /// Of a number, if it has an exact value that fits.
  std::optional<Rational> exact;
  bool truth = false;
  std::vector<TomlValue> items;
  /// In the order of the text.
  std::vector<TomlMember> members;
};

struct TomlMember {
  std::string key;
  Span span;
  TomlValue value;
};

/// Most bytes of such a file.
inline constexpr std::size_t kMaxTomlBytes = std::size_t(1) << 20;

/// Reads a file of at most kMaxTomlBytes. Errors: as `read_used_source`.
Result<SourceId> read_toml_source(Sources& sources, const std::string& path);

/// Errors: none, with one diagnostic: no TOML (the parser's words, with the place).
std::optional<TomlValue> parse_toml(const Sources& sources, SourceId source, Diagnostics& sink);

/// "a number", "a list", ...: for errors.
std::string_view kind_words(TomlValue::Kind kind);

/// Reads the members of one table: each by its key, with its type and range. What is wrong goes to the sink, once for
/// each member, and the member then counts as not given.
class TomlReader {
 public:
  /// `what` is said in errors: "a link". `span` is the place of the table.
  TomlReader(const TomlValue& table, Diagnostics& sink, std::string what)
      : table_(table), sink_(sink), what_(std::move(what)), asked_(table.members.size(), false) {}

  /// Null if the key is not there. It is known from now on.
  const TomlMember* find(std::string_view key);
  /// The same; an error if it is not there.
  const TomlMember* need(std::string_view key);

  /// Each is none if the key is not there, or wrong.
  std::optional<std::string> text(std::string_view key);
  std::optional<bool> truth(std::string_view key);
  std::optional<std::uint32_t> whole(std::string_view key, std::uint32_t least, std::uint32_t most);
  /// Finite and in the range.
  std::optional<double> number(std::string_view key, double least, double most);
  /// The members of an array of tables `[[key]]`, or one table `[key]`.
  std::vector<const TomlValue*> tables(std::string_view key);

  /// An error for each member that was never asked for, with the nearest that was. Call it last.
  void refuse_others();

  const TomlValue& table() const { return table_; }
  Diagnostics& sink() { return sink_; }
  const std::string& what() const { return what_; }

 private:
  const TomlValue& table_;
  Diagnostics& sink_;
  std::string what_;
  std::vector<bool> asked_;
  std::vector<std::string> known_;
};

/// What a text with a unit measures.
enum class Quantity : std::uint8_t { Time, Bytes, BytesPerSecond, FlopsPerSecond };

/// The value of "450 GB/s" in seconds, bytes, bytes a second or operations a second. GB is 10^9 and GiB 2^30 bytes.
/// Errors: none, with a diagnostic at the value: not a text, no number, no unit or an unknown one, below 0 (0 is a
/// value), not finite, or absurd: a time above 10^6 s, anything else above 10^18.
std::optional<double> read_quantity(const TomlValue& value, Quantity quantity, const std::string& what,
                                    Diagnostics& sink);
/// The same of a member; none if it is not there.
std::optional<double> read_quantity(TomlReader& reader, std::string_view key, Quantity quantity);
/// The same where it must be there and above 0.
std::optional<double> need_quantity(TomlReader& reader, std::string_view key, Quantity quantity);

/// Puts an error with a place into a sink.
void refuse(Diagnostics& sink, std::string_view kind, Span span, std::string message, std::string label = "",
            std::vector<std::string> notes = {});

}  // namespace stave
