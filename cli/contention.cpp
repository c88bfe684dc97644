#include "cli/contention.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/diagnostics.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

/// A size as a cluster's file has it. Errors: as there.
Result<std::uint64_t> size_of(const std::string& option, const std::string& text) {
  Diagnostics sink;
  TomlValue value;
  value.kind = TomlValue::Kind::Text;
  value.text = text;
  const std::optional<double> bytes = read_quantity(value, Quantity::Bytes, option, sink);
  if (!bytes) return Failure{sink.all().front().message};
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

}  // namespace

void ContentionOptions::add_to(CLI::App& command) {
  command.add_option("--links", links,
                     "how messages share a link of the cluster that is shared: first-come,\nfair (each an equal part), or own (they do not); first-come without")
      ->check(CLI::IsMember({"first-come", "fair", "own"}))
      ->type_name("RULE");
  command.add_flag("--blocking", blocking, "devices send and receive themselves, and compute nothing meanwhile");
  command.add_flag("--rendezvous", rendezvous, "a message begins when the one before it on its edge has ended");
  command.add_option("--buffered", buffered, "bytes that an edge takes before the receiver has a slot for them, as\n\"4 MB\"; with --cluster")
      ->type_name("SIZE");
}

Result<SimulationRules> ContentionOptions::rules() const {
  SimulationRules result;
  if (links == "own") result.links = Sharing::Own;
  if (links == "first-come") result.links = Sharing::FirstCome;
  if (links == "fair") result.links = Sharing::Fair;
  result.blocking = blocking;
  result.rendezvous = rendezvous;
  if (blocking && (rendezvous || !buffered.empty()))
    return Failure{fmt::format("--blocking leaves nothing to {}: a device waits for each of its messages",
                               rendezvous ? "--rendezvous" : "--buffered")};
  if (rendezvous && !buffered.empty()) return Failure{"--rendezvous buffers nothing: it excludes --buffered"};
  if (buffered.empty()) return result;
  const Result<std::uint64_t> bytes = size_of("--buffered", buffered);
  if (!bytes) return bytes.failure();
  result.buffered_bytes = bytes.value();
  return result;
}

}  // namespace stave
