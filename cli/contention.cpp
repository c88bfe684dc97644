#include "cli/contention.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "cli/console.h"
#include "cli/arguments.h"
#include "compiler/diagnostics.h"
#include "scheduler/contention/sharing.h"
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
  std::vector<std::string> names;
  std::string words = "how messages share a link of the cluster that is shared:";
  for (const SharingRule& each : kSharings) {
    names.emplace_back(each.name);
    words += fmt::format("\n{}, {}", each.name, each.words);
  }
  words += fmt::format("; {} without", kSharings[0].name);
  command.add_option("--links", links, words)
      ->check(CLI::IsMember(names))
      ->type_name("RULE");
  command.add_flag("--blocking", blocking, "devices send and receive themselves, and compute nothing meanwhile");
  command.add_flag("--rendezvous", rendezvous, "a message begins when the one before it on its edge has ended");
  command.add_option("--buffered", buffered, "bytes that an edge takes before the receiver has a slot for them, as\n\"4 MB\"; with --cluster")
      ->type_name("SIZE");
  command.add_option("--launch", launch, "what it takes to launch an op: added to each, in the unit of the costs")
      ->type_name("COST");
}

Result<SimulationRules> ContentionOptions::rules() const {
  SimulationRules result;
  for (std::size_t i = 0; i < kSharings.size(); ++i)
    if (kSharings[i].name == links) result.links = static_cast<Sharing>(i);
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

Result<std::optional<Rational>> ContentionOptions::launch_cost() const {
  if (launch.empty()) return std::optional<Rational>();
  const std::optional<Rational> cost = exact_number(launch);
  if (!cost || *cost < Rational(0))
    return Failure{fmt::format("--launch takes a cost of at least 0, as 1/2 or 0.5, and not `{}`", printable(launch))};
  return cost;
}

Result<void> add_launch(Schedule& schedule, Rational launch) {
  bool fits = true;
  const auto longer = [&](Rational& cost, int launches) {
    for (; launches > 0; --launches) {
      const std::optional<Rational> sum = add(cost, launch);
      fits = fits && sum.has_value();
      cost = sum.value_or(cost);
    }
  };
  for (IndexedValues& kind : schedule.costs.duration)
    for (Rational& cost : kind.values) longer(cost, 1);
  for (PairCost& pair : schedule.costs.pairs) longer(pair.duration, 2);
  if (!fits) return Failure{"--launch: an op and its launch together are too finely divided"};
  return {};
}

}  // namespace stave
