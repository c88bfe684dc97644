#include "scheduler/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/nearest.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

bool before(const Cluster::Pair& x, const Cluster::Pair& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; }

class Reading {
 public:
  Reading(const TomlValue& root, Diagnostics& sink) : root_(root, sink, "a cluster"), sink_(sink) {}

  std::optional<Cluster> all() {
    const std::size_t before = sink_.errors();
    result_.name = root_.text("name").value_or("");
    root_.find("source");
    named("device", [&](const TomlMember& member) { device(member); });
    named("link", [&](const TomlMember& member) { link(member); });
    const std::vector<const TomlValue*> nodes = root_.tables("node");
    for (const TomlValue* each : nodes) node(*each);
    for (const TomlValue* each : root_.tables("between")) between(*each);
    settle(by_accelerators_, result_.by_accelerators);
    settle(by_nodes_, result_.by_nodes);
    settle(by_regions_, result_.by_regions);
    root_.refuse_others();
    if (nodes.empty())
      refuse(sink_, "toml-missing", root_.table().span, "a cluster needs a node", "", {"as `[[node]]` with `device = \"h100\"`, `count = 8`"});
    else
      result_.span = nodes[0]->span;
    check_sharing();
    if (sink_.errors() != before) return std::nullopt;
    return std::move(result_);
  }

 private:
  /// Calls `read` for each table `[what.NAME]`.
  template <class Read>
  void named(const char* what, const Read& read) {
    const TomlMember* const found = root_.find(what);
    if (found == nullptr) return;
    if (found->value.kind != TomlValue::Kind::Table)
      return refuse(sink_, "toml-type", found->value.span,
                    fmt::format("`{0}` takes tables with names, as `[{0}.NAME]`", what));
    for (const TomlMember& member : found->value.members) {
      if (member.value.kind == TomlValue::Kind::Table)
        read(member);
      else
        refuse(sink_, "toml-type", member.value.span,
               fmt::format("`{0}` takes tables with names, as `[{0}.NAME]`, and `{1}` is {2}", what, member.key,
                           kind_words(member.value.kind)));
    }
  }

  void device(const TomlMember& member) {
    TomlReader reader(member.value, sink_, fmt::format("device `{}`", member.key));
    Accelerator result;
    result.name = member.key;
    if (const TomlMember* const peak = reader.need("peak")) peaks(*peak, result);
    if (const TomlMember* const memory = reader.need("memory")) {
      result.memory_span = memory->span;
      result.memory_bytes = read_quantity(memory->value, Quantity::Bytes, "`memory`", sink_).value_or(0);
    }
    result.memory_bytes_per_second = need_quantity(reader, "memory_bandwidth", Quantity::BytesPerSecond).value_or(1);
    if (const TomlMember* const share = reader.find("efficiency")) efficiency(*share, result);
    result.launch_seconds = read_quantity(reader, "launch", Quantity::Time).value_or(0);
    result.slowdown = reader.number("slowdown", 1, 1000).value_or(1);
    reader.refuse_others();
    result_.accelerators.push_back(std::move(result));
  }

  void peaks(const TomlMember& member, Accelerator& into) {
    if (member.value.kind != TomlValue::Kind::Table)
      return refuse(sink_, "toml-type", member.value.span,
                    "`peak` takes a table, as { bf16 = \"989 TFLOP/s\" }");
    TomlReader reader(member.value, sink_, "`peak`");
    for (std::size_t p = 0; p < kPrecisions.size(); ++p)
      into.peak[p] = read_quantity(reader, kPrecisions[p].name, Quantity::FlopsPerSecond).value_or(0);
    reader.refuse_others();
    if (member.value.members.empty())
      refuse(sink_, "toml-missing", member.span, "`peak` needs the rate of a precision, as bf16 = \"989 TFLOP/s\"");
  }

  void efficiency(const TomlMember& member, Accelerator& into) {
    if (member.value.kind == TomlValue::Kind::Number) {
      if (!(member.value.number > 0 && member.value.number <= 1))
        refuse(sink_, "toml-value", member.value.span,
               fmt::format("`efficiency` is {}; it must be above 0, and 1 at most", member.value.text));
      into.efficiency = {{0, member.value.number}};
      return;
    }
    if (member.value.kind != TomlValue::Kind::Array || member.value.items.empty())
      return refuse(sink_, "toml-type", member.value.span,
                    "`efficiency` takes a number, or a list as [{ flops = 1e9, share = 0.2 }, ...]");
    into.efficiency.clear();
    for (const TomlValue& each : member.value.items) {
      if (each.kind != TomlValue::Kind::Table) {
        refuse(sink_, "toml-type", each.span, "a point of `efficiency` is a table, as { flops = 1e9, share = 0.2 }");
        continue;
      }
      TomlReader reader(each, sink_, "a point of `efficiency`");
      reader.need("flops");
      reader.need("share");
      const double flops = reader.number("flops", 1, 1e30).value_or(1);
      const double share = reader.number("share", 1e-6, 1).value_or(1);
      reader.refuse_others();
      if (!into.efficiency.empty() && flops <= into.efficiency.back().first)
        refuse(sink_, "toml-value", each.span, "the points of `efficiency` come by rising `flops`");
      into.efficiency.push_back({flops, share});
    }
  }

  void link(const TomlMember& member) {
    TomlReader reader(member.value, sink_, fmt::format("link `{}`", member.key));
    Link result;
    result.name = member.key;
    reader.need("latency");
    result.latency_seconds = read_quantity(reader, "latency", Quantity::Time).value_or(0);
    result.bytes_per_second = need_quantity(reader, "bandwidth", Quantity::BytesPerSecond).value_or(1);
    result.shared_by = reader.whole("shared_by", 1, kMaxAccelerators).value_or(1);
    result.both_ways = reader.truth("both_ways").value_or(true);
    const TomlMember* const shared = reader.find("shared_by");
    shared_by_.push_back(shared == nullptr ? Span() : shared->value.span);
    reader.refuse_others();
    result_.links.push_back(std::move(result));
  }

  /// The number of what is called so; none, and said, if nothing is.
  template <class Items>
  std::optional<std::uint32_t> find(TomlReader& reader, std::string_view key, const Items& items, const char* what) {
    const std::optional<std::string> name = reader.text(key);
    if (!name) return std::nullopt;
    std::vector<std::string_view> names;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      if (items[i].name == *name) return i;
      names.push_back(items[i].name);
    }
    nothing(reader.find(key)->value.span, what, *name, names);
    return std::nullopt;
  }

  void nothing(Span span, const char* what, const std::string& name, const std::vector<std::string_view>& names) {
    Diagnostic diagnostic;
    diagnostic.kind = "toml-name";
    diagnostic.message = fmt::format("this cluster has no {} `{}`", what, name);
    diagnostic.primary = {span, ""};
    if (const std::string_view nearest = nearest_name(name, names); !nearest.empty())
      diagnostic.fix = fmt::format("did you mean `{}`?", nearest);
    else if (!names.empty())
      diagnostic.notes.push_back(fmt::format("there are {}", fmt::join(names, ", ")));
    sink_.add(std::move(diagnostic));
  }

  // Those that share a link sit in one node.
  void check_sharing() {
    std::uint32_t most = 0;
    for (const Node& each : result_.nodes) most = std::max(most, each.count);
    for (std::size_t i = 0; i < result_.links.size() && most > 0; ++i)
      if (const std::uint32_t by = result_.links[i].shared_by; by > most)
        refuse(sink_, "toml-value", shared_by_[i],
               fmt::format("a link is shared by accelerators of one node, and {} of `shared_by` are more than the {} of the largest",
                           by, most));
  }

  void node(const TomlValue& table) {
    TomlReader reader(table, sink_, "a node");
    Node result;
    result.name = reader.text("name").value_or(fmt::format("node {}", result_.nodes.size()));
    result.region = reader.text("region").value_or("");
    reader.need("device");
    result.accelerator = find(reader, "device", result_.accelerators, "device").value_or(0);
    result.count = reader.whole("count", 1, kMaxAccelerators).value_or(1);
    const std::uint32_t copies = reader.whole("copies", 1, kMaxAccelerators).value_or(1);
    result.inside = find(reader, "inside", result_.links, "link").value_or(Cluster::kNone);
    result.network = find(reader, "network", result_.links, "link").value_or(Cluster::kNone);
    reader.refuse_others();
    result.group = first_of(group_of_, result.name);
    result.area = first_of(area_of_, result.region);
    for (std::uint32_t i = 0; i < copies; ++i) {
      if (std::uint64_t(result_.size) + result.count > kMaxAccelerators)
        return refuse(sink_, "toml-value", table.span,
                      fmt::format("the cluster has more than {} accelerators with these", kMaxAccelerators));
      result.first = result_.size;
      result_.size += result.count;
      result_.nodes.push_back(result);
    }
  }

  /// The number of the first node of this name or region, which is the next one if there is none yet.
  std::uint32_t first_of(std::map<std::string, std::uint32_t>& known, const std::string& name) const {
    return known.insert({name, static_cast<std::uint32_t>(result_.nodes.size())}).first->second;
  }

  void between(const TomlValue& table) {
    TomlReader reader(table, sink_, "a table `between`");
    reader.need("link");
    const std::uint32_t over = find(reader, "link", result_.links, "link").value_or(0);
    const TomlMember* const devices = reader.find("devices");
    const TomlMember* const nodes = reader.find("nodes");
    const TomlMember* const regions = reader.find("regions");
    reader.refuse_others();
    if ((devices != nullptr) + (nodes != nullptr) + (regions != nullptr) != 1)
      return refuse(sink_, "toml-missing", table.span,
                    "a table `between` needs one of `devices`, `nodes` and `regions`, with two of them");
    const TomlMember& ends = devices != nullptr ? *devices : nodes != nullptr ? *nodes : *regions;
    const TomlValue::Kind kind = devices != nullptr ? TomlValue::Kind::Number : TomlValue::Kind::Text;
    if (ends.value.kind != TomlValue::Kind::Array || ends.value.items.size() != 2 ||
        ends.value.items[0].kind != kind || ends.value.items[1].kind != kind)
      return refuse(sink_, "toml-type", ends.value.span,
                    fmt::format("`{}` takes a list of two, as {}", ends.key,
                                devices != nullptr ? "[0, 8]" : "[\"left\", \"right\"]"));
    if (devices == nullptr) return names(ends, nodes != nullptr, over);
    std::array<std::uint32_t, 2> both = {};
    for (std::size_t i = 0; i < 2; ++i) {
      const TomlValue& end = ends.value.items[i];
      if (!end.exact || !end.exact->whole() || *end.exact < Rational(0) || *end.exact >= Rational(result_.size))
        return refuse(sink_, "toml-name", end.span,
                      fmt::format("this cluster has no accelerator {}: they run from 0 to {}", end.text,
                                  std::int64_t(result_.size) - 1));
      both[i] = static_cast<std::uint32_t>(end.exact->numerator());
    }
    if (both[0] == both[1])
      return refuse(sink_, "toml-value", ends.value.span, "a link joins two accelerators, and these are one");
    join(by_accelerators_, both, over, ends);
  }

  void names(const TomlMember& ends, bool of_nodes, std::uint32_t over) {
    const std::map<std::string, std::uint32_t>& known = of_nodes ? group_of_ : area_of_;
    std::array<std::uint32_t, 2> both = {};
    for (std::size_t i = 0; i < 2; ++i) {
      const TomlValue& end = ends.value.items[i];
      if (const auto found = known.find(end.text); found != known.end()) {
        both[i] = found->second;
        continue;
      }
      std::vector<std::string_view> all;
      for (const auto& [name, first] : known) all.push_back(name);
      return nothing(end.span, of_nodes ? "node" : "region", end.text, all);
    }
    join(of_nodes ? by_nodes_ : by_regions_, both, over, ends);
  }

  /// As Cluster::Pair, with its place in the file.
  struct Joined {
    Cluster::Pair pair;
    const TomlMember* ends = nullptr;
  };
  static void join(std::vector<Joined>& into, std::array<std::uint32_t, 2> both, std::uint32_t over, const TomlMember& ends) {
    into.push_back({{std::min(both[0], both[1]), std::max(both[0], both[1]), over}, &ends});
  }

  /// By number, each two once.
  void settle(std::vector<Joined>& joined, std::vector<Cluster::Pair>& into) {
    std::stable_sort(joined.begin(), joined.end(), [](const Joined& x, const Joined& y) { return before(x.pair, y.pair); });
    for (const Joined& each : joined) {
      if (!into.empty() && !before(into.back(), each.pair))
        refuse(sink_, "toml-value", each.ends->value.span, fmt::format("these two `{}` have a link already", each.ends->key));
      else
        into.push_back(each.pair);
    }
  }

  TomlReader root_;
  Diagnostics& sink_;
  Cluster result_;
  /// Of each link, where the file says it.
  std::vector<Span> shared_by_;
  std::map<std::string, std::uint32_t> group_of_;
  std::map<std::string, std::uint32_t> area_of_;
  std::vector<Joined> by_accelerators_;
  std::vector<Joined> by_nodes_;
  std::vector<Joined> by_regions_;
};

/// The link of two in sorted pairs; kNone without.
std::uint32_t link_of(const std::vector<Cluster::Pair>& pairs, std::uint32_t a, std::uint32_t b) {
  const Cluster::Pair both{std::min(a, b), std::max(a, b), 0};
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), both, before);
  return found == pairs.end() || before(both, *found) ? Cluster::kNone : found->link;
}

}  // namespace

double Accelerator::efficiency_of(double flops) const {
  const auto above = std::find_if(efficiency.begin(), efficiency.end(), [&](const auto& at) { return at.first >= flops; });
  if (above == efficiency.begin()) return above->second;
  if (above == efficiency.end()) return efficiency.back().second;
  const auto& [low, low_share] = *(above - 1);
  const auto& [high, high_share] = *above;
  return low_share + (high_share - low_share) * (std::log(flops) - std::log(low)) / (std::log(high) - std::log(low));
}

std::uint32_t Cluster::node_of(std::uint32_t accelerator) const {
  const auto after = std::upper_bound(nodes.begin(), nodes.end(), accelerator,
                                      [](std::uint32_t at, const Node& node) { return at < node.first; });
  return static_cast<std::uint32_t>(after - nodes.begin()) - 1;
}

bool Cluster::all_alike() const {
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const Node& node) { return node.accelerator == nodes[0].accelerator; });
}

std::uint32_t Cluster::link(std::uint32_t a, std::uint32_t b) const {
  if (const std::uint32_t own = link_of(by_accelerators, a, b); own != kNone) return own;
  const std::uint32_t node_a = node_of(a);
  const std::uint32_t node_b = node_of(b);
  const Node& of_a = nodes[node_a];
  const Node& of_b = nodes[node_b];
  if (node_a == node_b) return of_a.inside;
  if (const std::uint32_t own = link_of(by_nodes, of_a.group, of_b.group); own != kNone) return own;
  if (const std::uint32_t own = link_of(by_regions, of_a.area, of_b.area); own != kNone) return own;
  return of_a.area == of_b.area && of_a.network == of_b.network ? of_a.network : kNone;
}

std::string Cluster::place(std::uint32_t accelerator) const {
  const std::uint32_t at = node_of(accelerator);
  const Node& node = nodes[at];
  const auto same = [&](const Node& other) { return other.name == node.name; };
  const auto copies = std::count_if(nodes.begin(), nodes.end(), same);
  const std::string copy =
      copies > 1 ? fmt::format(", copy {} of {}", std::count_if(nodes.begin(), nodes.begin() + at + 1, same), copies) : "";
  return fmt::format("accelerator {} ({}, node `{}`{})", accelerator, accelerators[node.accelerator].name, node.name, copy);
}

std::optional<Cluster> read_cluster(const Sources& sources, SourceId source, Diagnostics& sink) {
  const std::optional<TomlValue> root = parse_toml(sources, source, sink);
  if (!root) return std::nullopt;
  return Reading(*root, sink).all();
}

}  // namespace stave
