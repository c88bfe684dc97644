#include "scheduler/model_prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "compiler/weights.h"
#include "scheduler/message_prices.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

/// Most values of one kind of op.
constexpr std::uint64_t kMaxValues = std::uint64_t(1) << 25;

/// What a stage does with one microbatch, or one slice of it, on its device.
struct StageWork {
  LayerTimes seconds;
  double activation_bytes = 0;
  /// Operations: products with weights, and attention's own. Nothing that is made again counts.
  double weight_flops = 0;
  double core_flops = 0;
};

class Pricing {
 public:
  Pricing(const ModelPrices& prices, const std::vector<std::uint32_t>& map, const std::vector<std::uint32_t>& blocks,
          const Schedule& schedule, const World& world, CostSet& costs, Diagnostics& sink)
      : prices_(prices),
        model_(prices.model()),
        cluster_(prices.cluster()),
        map_(map),
        blocks_(blocks),
        schedule_(schedule),
        world_(world),
        costs_(costs),
        sink_(sink) {}

  bool all() {
    const std::size_t before = sink_.errors();
    if (!fits() || !find_layers()) return false;
    find_sites();
    if (sink_.errors() != before) return false;
    costs_.unit = "us";
    costs_.setups = {};
    find_lengths();
    for (std::uint32_t k = 0; k < schedule_.ops.kinds().size() && sink_.errors() == before; ++k) kind(KindId(k));
    if (sink_.errors() == before) operations();
    if (sink_.errors() == before) weights();
    if (sink_.errors() == before) messages();
    return sink_.errors() == before;
  }

 private:
  /// Whether the cluster has a place for every device.
  bool fits() {
    const std::uint64_t width = model_.parallel.width();
    if (!map_.empty() && map_.size() != schedule_.devices) {
      refuse(sink_, "cluster-small", cluster_.span,
             fmt::format("--map places {} devices, and schedule `{}` has {}", map_.size(), schedule_.name, schedule_.devices));
      return false;
    }
    places_ = schedule_.devices;
    for (const std::uint32_t each : map_) places_ = std::max<std::uint64_t>(places_, std::uint64_t(each) + 1);
    const std::uint64_t needed = places_ * width * model_.parallel.data;
    if (needed <= cluster_.size) return true;
    std::string why = fmt::format("{} devices", schedule_.devices);
    if (places_ > schedule_.devices) why = fmt::format("{} places of --map", places_);
    if (width > 1) why += fmt::format(" of {} accelerators", width);
    if (model_.parallel.data > 1) why += fmt::format(", {} times", model_.parallel.data);
    refuse(sink_, "cluster-small", cluster_.span,
           fmt::format("schedule `{}` takes {} accelerators ({}), and the cluster has {}", schedule_.name, needed, why,
                       cluster_.size));
    return false;
  }

  bool find_layers() {
    if (!blocks_.empty()) {
      layers_ = ranges_of(model_, blocks_);
      return true;
    }
    std::optional<std::vector<LayerRange>> layers = layers_of_stages(model_, schedule_, world_.routes, sink_);
    if (layers) layers_ = std::move(*layers);
    return layers.has_value();
  }

  /// The slowest of the links from the first of some accelerators to the others; null, and said, if one has none.
  const Link* slowest(std::uint32_t first, std::uint32_t step, std::uint32_t count, const char* what) {
    const Link* result = nullptr;
    for (std::uint32_t i = 1; i < count; ++i) {
      const std::uint32_t found = cluster_.link(first, first + i * step);
      if (found == Cluster::kNone) {
        no_path(first, first + i * step, what);
        return nullptr;
      }
      const Link& link = cluster_.links[found];
      if (result == nullptr || link.bytes_per_second < result->bytes_per_second) result = &link;
    }
    return result;
  }

  void no_path(std::uint32_t a, std::uint32_t b, const char* what) {
    if (said_no_path_) return;
    said_no_path_ = true;
    refuse(sink_, "no-path", cluster_.span,
           fmt::format("there is no link between {} and {}, which share {}", cluster_.place(a), cluster_.place(b), what));
  }

  void find_sites() {
    const Parallel& parallel = model_.parallel;
    for (std::uint32_t d = 0; d < schedule_.devices; ++d) {
      const std::uint32_t at = prices_.accelerator(d);
      Site site = prices_.site(d);
      site.tensor = slowest(at, 1, parallel.tensor, "a stage (tensor)");
      site.context = slowest(at, parallel.tensor, parallel.context(), "a stage (context)");
      site.expert = slowest(at, parallel.tensor * parallel.context(), parallel.expert, "a stage (expert)");
      if (site.accelerator->peak[model_.precision] <= 0 && !said_no_peak_) {
        said_no_peak_ = true;
        refuse(sink_, "no-peak", model_.precision_span.valid() ? model_.precision_span : model_.span,
               fmt::format("device `{}` has no peak rate for {}", site.accelerator->name,
                           kPrecisions[model_.precision].name));
      }
      site_of_.push_back(number_of(site));
    }
    for (const Degree& degree : parallel.degrees) {
      std::vector<std::uint32_t>& row = site_of_shorter_.emplace_back();
      for (std::uint32_t d = 0; d < schedule_.devices; ++d) row.push_back(number_of(prices_.site(d, degree)));
    }
  }

  std::uint32_t number_of(const Site& site) {
    const auto known = std::find(sites_.begin(), sites_.end(), site);
    const auto result = static_cast<std::uint32_t>(known - sites_.begin());
    if (known == sites_.end()) sites_.push_back(site);
    return result;
  }

  /// Tokens of each microbatch and slice, and whether microbatches differ.
  void find_lengths() {
    const Sizes& sizes = schedule_.sizes;
    by_slice_ = schedule_.slices > 1;
    by_microbatch_ = sizes.slices.size() > 1 ||
                     std::any_of(sizes.microbatches.begin(), sizes.microbatches.end(),
                                 [&](std::uint32_t each) { return each != sizes.microbatches[0]; }) ||
                     (world_.placement.by_microbatch() && sites_.size() > 1);
  }

  /// Of each of its sequences, in all slices.
  double length_of(std::uint32_t m) const {
    const Sizes& sizes = schedule_.sizes;
    if (!sizes.microbatches.empty()) return sizes.microbatches[m];
    if (sizes.slices.empty()) return static_cast<double>(model_.sequence);
    const std::vector<std::uint32_t>& row = sizes.slices[sizes.slices.size() > 1 ? m : 0];
    return std::accumulate(row.begin(), row.end(), 0.0);
  }

  /// The place of the row of `degrees` that a microbatch's length falls into; their number if it is longer than all say.
  std::size_t degree_of(std::uint32_t m) const {
    const std::vector<Degree>& degrees = model_.parallel.degrees;
    const auto at = std::lower_bound(degrees.begin(), degrees.end(), length_of(m),
                                     [](const Degree& degree, double length) { return degree.up_to < length; });
    return static_cast<std::size_t>(at - degrees.begin());
  }
  std::uint32_t site_at(std::uint32_t m, std::uint32_t device) const {
    const std::size_t degree = degree_of(m);
    return degree < site_of_shorter_.size() ? site_of_shorter_[degree][device] : site_of_[device];
  }

  Tokens tokens(std::uint32_t m, std::uint32_t q) const {
    const Sizes& sizes = schedule_.sizes;
    const bool given = !sizes.microbatches.empty();
    double length = length_of(m);
    const double sequences = given ? 1 : static_cast<double>(model_.microbatch);
    if (sizes.slices.empty()) {
      length /= schedule_.slices;
      return tokens_of(model_, sequences, length, length * q);
    }
    const std::vector<std::uint32_t>& row = sizes.slices[sizes.slices.size() > 1 ? m : 0];
    double before = 0;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(q, row.size()); ++i) before += row[i];
    return tokens_of(model_, sequences, q < row.size() ? row[q] : 0, before);
  }

  /// The sum of a stage's layers. Equal layers, tokens and sites are priced once.
  const StageWork& work(std::uint32_t stage, std::uint32_t m, std::uint32_t q) {
    const Tokens on = tokens(m, q);
    const std::uint32_t site = site_at(m, world_.placement.of(stage, world_.placement.by_microbatch() ? m : 0));
    const auto [at, is_new] = stages_.insert({{layers_[stage].first, layers_[stage].end, site, on.count, on.seen}, {}});
    if (!is_new) return at->second;
    StageWork& result = at->second;
    for (std::uint32_t i = layers_[stage].first; i < layers_[stage].end;) {
      const Layer& layer = model_.layers[i];
      std::uint32_t same = 1;
      while (i + same < layers_[stage].end && model_.layers[i + same].span.begin == layer.span.begin) ++same;
      const LayerTimes one = layer_times(model_, layer, on, sites_[site]);
      result.seconds.forward += same * one.forward;
      result.seconds.input += same * one.input;
      result.seconds.weight += same * one.weight;
      result.seconds.again += same * one.again;
      const LayerWork all = work_of(model_, layer, on);
      result.activation_bytes += same * local_activation_bytes(model_, all, sites_[site]);
      result.weight_flops += same * all.weight_flops;
      result.core_flops += same * all.core_flops;
      i += same;
    }
    return result;
  }

  /// Microseconds in whole nanoseconds. None, and said, beyond what is exact.
  Rational time(double seconds) {
    const double ns = seconds * 1e9;
    if (ns < 1e15) return *Rational::make(std::llround(ns), 1000);
    too_large("a time is above 10^6 seconds");
    return 0;
  }
  Rational bytes(double count) { return whole(count, "a size is above 10^18 bytes"); }
  Rational whole(double count, const char* beyond) {
    if (count < 1e18) return Rational(std::llround(count));
    too_large(beyond);
    return 0;
  }
  void too_large(const char* what) {
    if (said_too_large_) return;
    said_too_large_ = true;
    refuse(sink_, "overflow", model_.span, fmt::format("with schedule `{}` {}", schedule_.name, what));
  }

  /// Values of a kind for each stage, and microbatch and slice where they differ.
  template <class Value>
  IndexedValues values(const OpKind& kind, const IndexedValues* shares, const Value& value) {
    IndexedValues result;
    std::uint64_t count = 1;
    std::array<std::uint32_t, 3> role_at = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    for (std::size_t i = kind.indices.size(); i-- > 0;) {
      const OpIndex& index = kind.indices[i];
      const bool counts = index.role == IndexRole::Stage || (index.role == IndexRole::Microbatch && by_microbatch_) ||
                          (index.role == IndexRole::Slice && by_slice_) || (shares != nullptr && shares->stride[i] != 0);
      if (index.role <= IndexRole::Slice && role_at[static_cast<std::size_t>(index.role)] == UINT32_MAX)
        role_at[static_cast<std::size_t>(index.role)] = static_cast<std::uint32_t>(i);
      if (!counts) continue;
      result.stride[i] = static_cast<std::uint32_t>(count);
      count *= index.extent;
      if (count > kMaxValues) {
        too_large("there are more than 2^25 times or sizes");
        return result;
      }
    }
    result.values.reserve(count);
    for (std::uint64_t n = 0; n < count; ++n) {
      std::array<std::uint32_t, kMaxIndices> index = {};
      for (std::size_t i = 0; i < kind.indices.size(); ++i)
        if (result.stride[i] != 0) index[i] = static_cast<std::uint32_t>(n / result.stride[i] % kind.indices[i].extent);
      const auto at = [&](IndexRole role) {
        const std::uint32_t i = role_at[static_cast<std::size_t>(role)];
        return i == UINT32_MAX ? 0 : index[i];
      };
      result.values.push_back(value(at(IndexRole::Stage), at(IndexRole::Microbatch), at(IndexRole::Slice), index));
    }
    return result;
  }

  void kind(KindId id) {
    const OpKind& of = schedule_.ops.kinds()[id];
    IndexedValues& duration = costs_.duration[id];
    const bool of_stage = of.extent(IndexRole::Stage) > 0;
    const bool recomputes = schedule_.ops.find(Operation::Recompute).valid();
    const auto priced = [&](const auto& seconds) {
      duration = values(of, nullptr, [&](std::uint32_t s, std::uint32_t m, std::uint32_t q, const auto&) {
        const std::uint32_t device = world_.placement.of(s, world_.placement.by_microbatch() ? m : 0);
        const double launch = sites_[site_of_[device]].accelerator->launch_seconds;
        return time(seconds(work(s, m, q).seconds) + launch);
      });
    };
    switch (of.operation) {
      case Operation::Forward: priced([](const LayerTimes& t) { return t.forward; }); break;
      case Operation::InputGradient:
        priced([&](const LayerTimes& t) { return t.input + (recomputes ? 0 : t.again); });
        break;
      case Operation::WeightGradient: priced([](const LayerTimes& t) { return t.weight; }); break;
      case Operation::Recompute: priced([](const LayerTimes& t) { return t.forward; }); break;
      // The sum of its parts, launched once.
      case Operation::Backward:
        duration = {};
        if (std::any_of(sites_.begin(), sites_.end(), [](const Site& site) { return site.accelerator->launch_seconds > 0; }))
          priced([&](const LayerTimes& t) { return t.input + t.weight + (recomputes ? 0 : t.again); });
        break;
      case Operation::ReduceGradient:
        duration = values(of, nullptr, [&](std::uint32_t s, auto, auto, const auto&) { return time(reduce(s)); });
        break;
      case Operation::Optimizer:
        duration = values(of, nullptr, [&](std::uint32_t s, auto, auto, const auto&) { return time(optimizer(s)); });
        break;
      case Operation::Declared:
        if (std::any_of(duration.values.begin(), duration.values.end(), [](Rational v) { return v != Rational(0); }))
          duration = {};
        break;
    }
    if (!of_stage) return;
    for (auto* memory : {&costs_.memory_taken[id], &costs_.memory_given[id]}) {
      if (!memory->given()) continue;
      if (std::all_of(memory->values.begin(), memory->values.end(), [](Rational v) { return v == Rational(0); })) continue;
      const IndexedValues shares = *memory;
      *memory = values(of, &shares, [&](std::uint32_t s, std::uint32_t m, std::uint32_t q, const auto& index) {
        const std::optional<Rational> size = multiply(shares.values[shares.at(index)], bytes(work(s, m, q).activation_bytes));
        if (!size) too_large("a size does not fit");
        return size.value_or(0);
      });
    }
  }

  /// What F, I and W do (see layer_work.h), and the rates of the devices. Expert ranks have microbatches of their own, so
  /// that each is a device of its own here. Where times were measured operations are not known.
  void operations() {
    costs_.flops = {};
    costs_.peak_flops.clear();
    for (const Layer& layer : model_.layers)
      if (layer.kind == LayerKind::Timed) return;
    costs_.flops.assign(schedule_.ops.kinds().size(), {});
    const auto counted = [&](Operation operation, double weight, double core) {
      const KindId id = schedule_.ops.find(operation);
      if (!id.valid()) return;
      costs_.flops[id] = values(schedule_.ops.kinds()[id], nullptr,
                                [&](std::uint32_t s, std::uint32_t m, std::uint32_t q, const auto&) {
                                  const StageWork& one = work(s, m, q);
                                  return whole(weight * one.weight_flops + core * one.core_flops,
                                               "an op has more than 10^18 operations");
                                });
    };
    counted(Operation::Forward, 1, 1);
    counted(Operation::InputGradient, 1, 2);
    counted(Operation::WeightGradient, 1, 0);
    for (const std::uint32_t at : site_of_) {
      const Site& site = sites_[at];
      double peak = site.ranks.empty() ? site.accelerator->peak[model_.precision] * model_.parallel.context() : 0;
      for (const Site::Rank& rank : site.ranks) peak += rank.accelerator->peak[model_.precision];
      costs_.peak_flops.push_back(peak * model_.parallel.tensor);
    }
  }

  LocalParameters parameters(std::uint32_t stage) const {
    LocalParameters result;
    for (std::uint32_t i = layers_[stage].first; i < layers_[stage].end; ++i) {
      const LocalParameters one = local_parameters(model_, work_of(model_, model_.layers[i]));
      result.dense += one.dense;
      result.experts += one.experts;
      // The table is there already.
      if (model_.layers[i].tied && model_.layers[layers_[stage].first].kind == LayerKind::Embedding)
        result.dense -= double(model_.layers[i].vocabulary) * double(model_.hidden) / model_.parallel.tensor;
    }
    return result;
  }

  /// Copies of a stage's dense parameters, and of its experts, over which gradients are summed.
  double dense_copies(std::uint32_t stage) const {
    return double(world_.placement.replicas[stage].size()) * model_.parallel.data * model_.parallel.context() *
           model_.parallel.expert;
  }
  double expert_copies(std::uint32_t stage) const {
    return double(world_.placement.replicas[stage].size()) * model_.parallel.data * model_.parallel.context();
  }

  double reduce(std::uint32_t stage) {
    const auto replicas = world_.placement.replicas[stage];
    const std::uint32_t first = prices_.accelerator(replicas[0]);
    const Link* link = slowest(first, static_cast<std::uint32_t>(places_) * model_.parallel.width(), model_.parallel.data,
                               "the gradients of a stage");
    const auto slower = [&](const Link* other) {
      if (other != nullptr && (link == nullptr || other->bytes_per_second < link->bytes_per_second)) link = other;
    };
    slower(sites_[site_of_[replicas[0]]].context);
    slower(sites_[site_of_[replicas[0]]].expert);
    for (std::size_t i = 1; i < replicas.size(); ++i) {
      const std::uint32_t other = prices_.accelerator(replicas[i]);
      const std::uint32_t found = cluster_.link(first, other);
      if (found == Cluster::kNone) {
        no_path(first, other, "the gradients of a stage");
        return 0;
      }
      slower(&cluster_.links[found]);
    }
    const LocalParameters local = parameters(stage);
    return all_reduce_seconds(link, dense_copies(stage), local.dense * model_.gradient_bytes) +
           all_reduce_seconds(link, expert_copies(stage), local.experts * model_.gradient_bytes);
  }

  /// Bytes of the optimizer's state on one rank.
  double state_bytes(std::uint32_t stage) const {
    const LocalParameters local = parameters(stage);
    if (!model_.parallel.zero) return local.all() * model_.optimizer_bytes;
    // Each copy keeps its share (Rajbhandari et al., arXiv:1910.02054, stage 1).
    return (local.dense / dense_copies(stage) + local.experts / expert_copies(stage)) * model_.optimizer_bytes;
  }

  /// Weights, gradients and state are read, weights and state written.
  double optimizer(std::uint32_t stage) const {
    const LocalParameters local = parameters(stage);
    const double moved =
        local.all() * (2 * model_.weight_bytes + model_.gradient_bytes) + 2 * state_bytes(stage);
    return moved / sites_[site_of_[world_.placement.replicas[stage][0]]].accelerator->memory_bytes_per_second;
  }

  void weights() {
    costs_.weights.clear();
    costs_.state.clear();
    for (std::uint32_t s = 0; s < schedule_.stages; ++s) {
      const LocalParameters local = parameters(s);
      costs_.weights.push_back(bytes(local.all() * model_.weight_bytes));
      costs_.state.push_back(bytes(local.all() * model_.gradient_bytes + state_bytes(s)));
    }
  }

  /// Bytes of a stage's weights that one rank sends, on average.
  double weights_bytes() {
    double sum = 0;
    for (std::uint32_t s = 0; s < schedule_.stages; ++s) sum += parameters(s).all();
    return sum / schedule_.stages * model_.weight_bytes;
  }

  double largest_weights() const {
    double most = 0;
    for (std::uint32_t s = 0; s < schedule_.stages; ++s) most = std::max(most, parameters(s).all());
    return most * model_.weight_bytes;
  }

  /// Bytes of the hidden states that one rank sends, of a microbatch (or slice).
  double states_bytes(std::uint32_t m, std::uint32_t q) const {
    const std::size_t degree = degree_of(m);
    const std::uint32_t ranks =
        degree < model_.parallel.degrees.size() ? model_.parallel.degrees[degree].ranks() : model_.parallel.context();
    return tokens(m, q).count / ranks * static_cast<double>(model_.hidden) * model_.message_bytes_per_number *
           model_.message_ratio / (model_.parallel.sequence ? model_.parallel.tensor : 1);
  }

  void messages() {
    const std::uint64_t devices = schedule_.devices;
    if (devices * devices > kMaxLinks)
      return refuse(sink_, "too-many", cluster_.span,
                    fmt::format("the messages between two of {} devices: {} in all, and at most {} can be", devices,
                                devices * devices, kMaxLinks));
    MessageSizes sizes;
    const std::vector<double> states =
        different_sizes(schedule_.microbatches, schedule_.slices, by_microbatch_,
                        [&](std::uint32_t m, std::uint32_t q) { return states_bytes(m, q); }, sizes);
    if (states.size() * (cluster_.links.size() + 1) > kMaxLinks)
      return refuse(sink_, "too-many", cluster_.span,
                    fmt::format("messages of {} sizes over {} kinds of links: at most {} costs can be", states.size(),
                                cluster_.links.size(), kMaxLinks));
    if (states.size() > 1) costs_.message.set_sizes(std::make_shared<const MessageSizes>(std::move(sizes)));
    const auto links_of = [&](const std::vector<double>& bytes_of_each) {
      return link_costs(prices_, schedule_.devices, bytes_of_each, [&](double seconds) { return time(seconds); });
    };
    const auto set_message = [&](std::size_t payload, std::shared_ptr<const LinkCosts<Rational>> links) {
      set_links_or_one(costs_.message, payload, schedule_.devices, std::move(links));
    };
    std::shared_ptr<const LinkCosts<Rational>> of_states;
    costs_.message_sizes.assign(schedule_.payloads.size(), 0);
    for (std::size_t p = 0; p < schedule_.payloads.size(); ++p) {
      if (schedule_.payloads[p].empty()) {
        set_message(p, links_of({0}));
      } else if (schedule_.payloads[p] == kWeightsPayload) {
        set_message(p, links_of({weights_bytes()}));
        costs_.message_sizes[p] = bytes(largest_weights());
      } else {
        if (of_states == nullptr) of_states = links_of(states);
        set_message(p, of_states);
        costs_.message_sizes[p] = bytes(*std::max_element(states.begin(), states.end()));
      }
    }
  }

  const ModelPrices& prices_;
  const Model& model_;
  const Cluster& cluster_;
  const std::vector<std::uint32_t>& map_;
  const std::vector<std::uint32_t>& blocks_;
  const Schedule& schedule_;
  const World& world_;
  CostSet& costs_;
  Diagnostics& sink_;

  /// Of one copy of the pipeline.
  std::uint64_t places_ = 0;
  std::vector<LayerRange> layers_;
  /// Different ones, and that of each device.
  std::vector<Site> sites_;
  std::vector<std::uint32_t> site_of_;
  /// By row of the model's degrees, that of each device.
  std::vector<std::vector<std::uint32_t>> site_of_shorter_;
  bool by_microbatch_ = false;
  bool by_slice_ = false;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, double, double>, StageWork> stages_;
  bool said_no_path_ = false;
  bool said_no_peak_ = false;
  bool said_too_large_ = false;
};

}  // namespace

Site ModelPrices::site(std::uint32_t device, const Degree& degree) const {
  const Parallel& parallel = model_->parallel;
  const std::uint32_t at = accelerator(device);
  const auto slowest = [&](std::uint32_t step, std::uint32_t count) {
    const Link* result = nullptr;
    for (std::uint32_t i = 1; i < count; ++i) {
      const std::uint32_t found = cluster_->link(at, at + i * step);
      if (found == Cluster::kNone) return static_cast<const Link*>(nullptr);
      const Link& link = cluster_->links[found];
      if (result == nullptr || link.bytes_per_second < result->bytes_per_second) result = &link;
    }
    return result;
  };
  Site result{&cluster_->kind_of(at), slowest(1, parallel.tensor), slowest(parallel.tensor, degree.ranks()),
              slowest(parallel.tensor * parallel.context(), parallel.expert), {}, degree.ulysses, degree.ring};
  if (cluster_->accelerators.size() == 1) return result;
  // Tensor and expert ranks share evenly, so each context rank is as slow as the slowest of its own.
  const auto rate = [&](const Accelerator* each) { return each->peak[model_->precision]; };
  std::vector<Site::Rank> ranks(degree.ranks());
  double sum = 0;
  for (std::uint32_t c = 0; c < degree.ranks(); ++c) {
    const Accelerator*& mine = ranks[c].accelerator;
    for (std::uint32_t e = 0; e < parallel.expert; ++e)
      for (std::uint32_t t = 0; t < parallel.tensor; ++t) {
        const Accelerator* each = &cluster_->kind_of(at + (e * parallel.context() + c) * parallel.tensor + t);
        if (mine == nullptr || rate(each) < rate(mine)) mine = each;
      }
    if (c == 0 || rate(mine) < rate(result.accelerator)) result.accelerator = mine;
    sum += rate(mine);
  }
  for (Site::Rank& each : ranks) each.share = sum > 0 ? rate(each.accelerator) / sum : 0;
  const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](const Site::Rank& each) { return each == ranks[0]; });
  if (!alike) result.ranks = std::move(ranks);
  return result;
}

const Accelerator& ModelPrices::smallest(std::uint32_t device) const {
  const std::uint32_t at = accelerator(device);
  const Accelerator* result = &cluster_->kind_of(at);
  if (cluster_->accelerators.size() == 1) return *result;
  for (std::uint32_t i = 1; i < model_->parallel.width(); ++i)
    if (cluster_->kind_of(at + i).memory_bytes < result->memory_bytes) result = &cluster_->kind_of(at + i);
  return *result;
}

bool ModelPrices::apply(const Schedule& schedule, const World& world, CostSet& costs, Diagnostics& sink) const {
  return Pricing(*this, map_, blocks_, schedule, world, costs, sink).all();
}

}  // namespace stave
