#include "scheduler/message_prices.h"

#include <map>
#include <optional>
#include <utility>

namespace stave {

std::vector<double> different_sizes(std::uint32_t microbatches, std::uint32_t slices, bool microbatches_differ,
                                    const std::function<double(std::uint32_t, std::uint32_t)>& bytes,
                                    MessageSizes& sizes) {
  std::vector<double> result(1, 0);
  std::map<double, std::uint32_t> numbers;
  sizes.slices = slices;
  for (std::uint32_t m = 0; m < (microbatches_differ ? microbatches : 1); ++m)
    for (std::uint32_t q = 0; q < slices; ++q) {
      const double mine = bytes(m, q);
      const auto [at, is_new] = numbers.try_emplace(mine, static_cast<std::uint32_t>(result.size()));
      if (is_new) result.push_back(mine);
      sizes.of.push_back(at->second);
      result[0] += mine;
    }
  result[0] /= static_cast<double>(sizes.of.size());
  if (numbers.size() == 1) {
    result = {numbers.begin()->first};
    sizes.of.clear();
  } else if (!microbatches_differ) {
    // All microbatches have the slices of the first.
    const std::vector<std::uint32_t> first = sizes.of;
    for (std::uint32_t m = 1; m < microbatches; ++m) sizes.of.insert(sizes.of.end(), first.begin(), first.end());
  }
  sizes.count = static_cast<std::uint32_t>(result.size());
  return result;
}

std::shared_ptr<const LinkCosts<Rational>> link_costs(const ModelPrices& prices, std::uint32_t devices,
                                                      const std::vector<double>& sizes,
                                                      const std::function<Rational(double)>& time) {
  const Cluster& cluster = prices.cluster();
  LinkCosts<Rational> result;
  // The last kind is no link.
  const auto none = static_cast<std::uint32_t>(cluster.links.size());
  result.kinds = none + std::size_t(1);
  for (const double size : sizes) {
    for (const Link& link : cluster.links)
      result.values.push_back(time(link.latency_seconds + size / link.bytes_per_second +
                                   (size > 0 ? prices.model().message_seconds : 0)));
    result.values.push_back(0);
  }
  result.kind.reserve(std::size_t(devices) * devices);
  for (std::uint32_t a = 0; a < devices; ++a)
    for (std::uint32_t b = 0; b < devices; ++b) {
      const std::uint32_t link = a == b ? Cluster::kNone : cluster.link(prices.accelerator(a), prices.accelerator(b));
      result.kind.push_back(link == Cluster::kNone ? none : link);
    }
  return std::make_shared<const LinkCosts<Rational>>(std::move(result));
}

void set_links_or_one(MessageCosts<Rational>& costs, std::size_t payload, std::uint32_t devices,
                      std::shared_ptr<const LinkCosts<Rational>> links) {
  std::optional<Rational> one;
  bool alike = !links->by_size();
  for (std::size_t pair = 0; pair < links->kind.size() && alike; ++pair) {
    if (links->kind[pair] + std::size_t(1) == links->kinds) continue;
    alike = !one || *one == links->at(pair, 0);
    one = links->at(pair, 0);
  }
  if (alike)
    costs.set(payload, one.value_or(0));
  else
    costs.set_links(payload, devices, std::move(links));
}

}  // namespace stave
