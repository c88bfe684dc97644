// Makes Programs for tests of the executor by hand, with core/ alone: orders of F, I, W and B, lowered with as few
// slots as liveness allows, so that every wait matters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"

namespace stave::test {

struct Step {
  char letter = 'F';
  std::uint32_t stage = 0;
  std::uint32_t microbatch = 0;
};
/// One list for every device.
using Order = std::vector<std::vector<Step>>;

Table make_table(const Order& order, std::uint32_t stages, std::uint32_t microbatches);

/// The Program of a legal table.
Program lower_by_hand(Table table, std::uint32_t stages, std::uint32_t microbatches);

/// The Program of any table, in table order: a message is received right before its reader, sent right after its maker.
Program lower_unchecked_by_hand(Table table, std::uint32_t stages, std::uint32_t microbatches);

Order gpipe(std::uint32_t devices, std::uint32_t microbatches);
Order one_f_one_b(std::uint32_t devices, std::uint32_t microbatches);
/// 1F1B with a split backward whose W come late; `reversed` takes them by falling microbatch.
Order split_1f1b(std::uint32_t devices, std::uint32_t microbatches, bool reversed);
/// A random legal order on any placement; W and I split or fused at random.
Order random_order(std::uint64_t seed, const std::vector<std::uint32_t>& device_of_stage, std::uint32_t devices,
                   std::uint32_t microbatches);

Program make(const Order& order, std::uint32_t stages, std::uint32_t microbatches);

}  // namespace stave::test
