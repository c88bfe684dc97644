// What the messages of a model take: their different sizes, and each size over every kind of link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "compiler/rational.h"
#include "core/message_costs.h"
#include "scheduler/model_prices.h"

namespace stave {

/// Bytes of the different sizes that microbatches and slices have, as `bytes` says: first their mean, then, where they differ,
/// each of them; and `sizes`, which of them each has. Microbatches are asked for only if they differ.
std::vector<double> different_sizes(std::uint32_t microbatches, std::uint32_t slices, bool microbatches_differ,
                                    const std::function<double(std::uint32_t microbatch, std::uint32_t slice)>& bytes,
                                    MessageSizes& sizes);

/// What a message of each of these sizes, in bytes, takes between every two devices: the link's latency, its bytes over the
/// bandwidth, and what the model's messages take at their ends. `time` makes a cost of seconds. Without a path it is 0:
/// where a message goes that way it is an error of its own.
std::shared_ptr<const LinkCosts<Rational>> link_costs(const ModelPrices& prices, std::uint32_t devices,
                                                      const std::vector<double>& sizes,
                                                      const std::function<Rational(double seconds)>& time);

/// Sets them for a payload; where all are alike, as the one cost that they are.
void set_links_or_one(MessageCosts<Rational>& costs, std::size_t payload, std::uint32_t devices,
                      std::shared_ptr<const LinkCosts<Rational>> links);

}  // namespace stave
