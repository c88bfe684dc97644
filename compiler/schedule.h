// Schedule: what there is to run, what each op needs, where it runs, what it costs, and the blocks that order it.
// Everything is a number here; names, loops and `next` are gone. Made by `expand` of compile.h, or csv.h; ordered by
// scheduler/order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ast.h"
#include "compiler/diagnostics.h"
#include "compiler/rational.h"
#include "compiler/indexed_values.h"
#include "core/ids.h"
#include "core/message_costs.h"
#include "core/op_set.h"
#include "core/program.h"
#include "core/setup_costs.h"
#include "core/sizes.h"
#include "core/table.h"

namespace stave {

/// Most of each that a schedule may have.
inline constexpr std::uint32_t kMaxDevices = 1u << 14;
inline constexpr std::uint32_t kMaxStages = 1u << 16;
inline constexpr std::uint32_t kMaxMicrobatches = 1u << 24;
inline constexpr std::uint32_t kMaxSlices = 1u << 12;

/// Most pairs of devices, over all lines that price messages by them.
inline constexpr std::uint64_t kMaxLinks = std::uint64_t(1) << 24;

/// Most blocks of the order of one device: a device that is free asks them one after the other.
inline constexpr std::size_t kMaxBlocks = 1u << 12;

/// One thing an op waits for.
struct Dependency {
  /// Never a fused op.
  OpId op;
  /// Index into Schedule::payloads; 0 for `after`, which carries no data.
  std::uint16_t payload = 0;
};

/// What a block offers, in the order in which it offers it.
enum class OrderKind : std::uint8_t { List, Any, Fill };

struct OrderBlock {
  OrderKind kind = OrderKind::List;
  /// A list: in order. `any`, `fill`: lowest `at` first, then as written.
  std::vector<OpId> ops;
  /// Of a list: the rising indices into `ops` of those that overlap with the one after them.
  std::vector<std::uint32_t> pairs;
};

struct DeviceOrder {
  /// From top to bottom, lists first; empty blocks are left out.
  std::vector<OrderBlock> blocks;
  /// `limit activations`, `limit memory`; none without.
  std::optional<Rational> activation_limit;
  std::optional<Rational> memory_limit;
  /// `limit versions`: how many versions of a stage's weights it keeps, the newest among them.
  std::optional<Rational> version_limit;
  Span activation_limit_span;
  Span memory_limit_span;
  Span version_limit_span;
};

/// What an overlapped pair of the order costs.
struct PairCost {
  /// The op written first, and the other.
  OpId first;
  OpId second;
  Rational duration;
  /// The value that gave it, where the file says one.
  Span span;
};

/// What an overlapped pair of two kinds costs, in either order.
struct KindPairCost {
  KindId first;
  KindId second;
  Rational duration;
};

/// What each kind costs and takes. Shape: one entry a kind.
struct CostSet {
  /// What a unit of time is called in print: "us"; empty if nothing says.
  std::string unit;
  /// Duration, freezing included; a fused op has the sum of its parts unless given.
  IdVector<KindId, IndexedValues> duration;
  /// Of every overlapped pair that stands in the order, by rising first op.
  std::vector<PairCost> pairs;
  /// Pairs that have a price in place of the file's lines for pairs; none where those lines hold.
  std::optional<std::vector<KindPairCost>> priced_pairs;
  /// Between two ops that follow each other on a lane.
  SetupCosts<Rational> setups;
  /// Of a message between two devices, by payload (Schedule::payloads).
  MessageCosts<Rational> message;
  /// The values that gave them, where the file or the command line says them.
  IdVector<KindId, Span> duration_span;
  std::vector<Span> message_span;
  /// What is taken when an op starts (>= 0) and given back when it ends (>= 0), fused ops included.
  IdVector<KindId, IndexedValues> memory_taken;
  IdVector<KindId, IndexedValues> memory_given;
  /// Weights of each stage, for each replica and version.
  std::vector<Rational> weights;
  /// What a replica of each stage holds beside them, whatever the versions: gradients and the optimizer's state. Empty if
  /// nothing.
  std::vector<Rational> state;
  /// Of the largest message of each payload, where it lies in a slot; empty where nothing says.
  std::vector<Rational> message_sizes;
  /// Operations of a model in each op, without those of recomputation and before freezing; empty where nothing says.
  IdVector<KindId, IndexedValues> flops;
  /// The peak rate of each device, in operations a second, for as many microbatches as it runs at a time; empty likewise.
  std::vector<double> peak_flops;
  /// Share of a stage's parameters whose weight gradient is skipped, for each (stage, microbatch): [s * M + m]; empty
  /// without freezing.
  std::vector<Rational> freeze;
};

/// Where an op came from, for messages.
struct Origin {
  Span span;
  /// "on device 0, with m = 2"; what `next` or `*` stood for.
  std::string note;
};

/// Finds again where the ops of a schedule were written. Cost of a question: one expansion of one device.
class Origins {
 public:
  virtual ~Origins() = default;
  /// Of the `occurrence`-th time (from 0) that the text of `device` yields `op`, or a fused op that runs it.
  virtual Origin of(DeviceId device, OpId op, std::uint32_t occurrence = 0) const = 0;
  /// The declaration that makes an op need another, for the edges of a cycle; not valid if there is none.
  virtual Span need(OpId op, OpId needed) const = 0;
};

struct Schedule {
  std::string name;
  std::uint32_t devices = 0;
  std::uint32_t stages = 0;
  std::uint32_t microbatches = 0;
  std::uint32_t slices = 1;
  Sizes sizes;

  OpSet ops;
  /// False for ops that do not exist (`if`, an index outside its ragged list). Empty: all exist.
  std::vector<bool> exists;
  /// Device of every op by number; fused ops included.
  std::vector<std::uint16_t> device_of;
  /// What every op but the fused ones needs: row = op number.
  Rows<Dependency> needs;
  /// Names of messages; the first is empty, for `after`.
  std::vector<std::string> payloads = {""};

  IdVector<DeviceId, DeviceOrder> orders;
  CostSet costs;

  /// The file and its parameters' values, for `expect`, for messages and for printing.
  std::shared_ptr<const struct Expansion> expansion;
  std::shared_ptr<const Origins> origins;

  /// Every device has one list and nothing else: the order does not depend on costs.
  bool is_static() const {
    for (const DeviceOrder& order : orders)
      if (order.blocks.size() > 1 || (order.blocks.size() == 1 && order.blocks[0].kind != OrderKind::List) ||
          order.activation_limit || order.memory_limit)
        return false;
    return true;
  }
  bool op_exists(OpId op) const { return exists.empty() || exists[op.value]; }
};

}  // namespace stave
