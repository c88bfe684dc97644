// The order of a device, from the statements of its `on device`: loops run, `next` and `*` replaced by what they stand
// for, slots sorted. Rows of a `table` are order_from_table's. Statements and blocks are order_from_lists.cpp's, one op of
// them order_ops.cpp's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/evaluate.h"
#include "compiler/expansion.h"
#include "compiler/schedule.h"
#include "compiler/world.h"

namespace stave {

/// An op whose place in the text is looked for.
struct Wanted {
  OpId op;
  /// Which of its occurrences, from 0.
  std::uint32_t occurrence = 0;
  std::optional<Origin> found;
};

class OrderWriter {
 public:
  /// `wanted`: the writing stops when it is found, and an op that is written twice is no error. Errors: those of the
  /// lists of devices; a diagnostic, and Stop.
  OrderWriter(Evaluator& evaluator, const Expansion& expansion, Wanted* wanted = nullptr);

  /// Errors: a diagnostic, and Stop. Cost: some 20 ns an op.
  DeviceOrder write(std::uint32_t device);

  /// Thrown when a wanted op is found.
  struct Found {};

  /// Kinds that some device runs. Shape: [kind].
  const std::vector<bool>& run() const { return run_; }

 private:
  using Index = std::array<std::uint32_t, kMaxIndices>;

  /// The ops of a list or block while it is written.
  struct Block {
    OrderKind kind = OrderKind::List;
    std::vector<OpId> ops;
    /// As OrderBlock::pairs, in the order of the text.
    std::vector<std::uint32_t> pairs;
    /// By op, if the block has slots: the slot, and the statement.
    std::vector<Rational> slots;
    std::vector<const StatementCode*> statements;
  };

  /// What writing needs to know of a kind, packed.
  struct Facts {
    std::uint32_t first = 0;
    /// Number of indices that are written.
    std::uint32_t count = 0;
    Index strides = {};
    Index extents = {};
    bool partial = false;
    /// The device is that of the stage, which is this index.
    bool by_stage = false;
    std::uint32_t stage = 0;
    std::uint32_t microbatch = 0;
    /// The step of the replica, which is the one of the device in hand; 0 if there is none.
    std::uint32_t replica_stride = 0;
    /// First numbers of what it runs: its parts, or itself.
    std::vector<std::uint32_t> runs;
  };

  /// Where the search for `next` goes on, by row: the other indices of the op, whose steps these are.
  struct Cursors {
    Index steps = {};
    std::vector<std::uint32_t> at;
  };

  void find_facts();
  Cursors& cursors(std::uint32_t kind, std::uint32_t which);
  void find_devices();
  void write_items(const OnDeviceCode& on, DeviceOrder& to);
  void body(const BodyCode& statements, Block& block);
  void repeat(const StatementCode& statement, Block& block);
  void for_each(const StatementCode& statement, Block& block);
  void op(const StatementCode& statement, Block& block);
  void pair(const StatementCode& statement, TermId id, Block& block);
  void write(TermId id);
  void stars(const Term& term, Index& at, const std::vector<std::uint32_t>& order, std::size_t k);
  void next(const Term& term, TermId id, Index& at, std::uint32_t which);
  void all_next(const Term& term, TermId id, Index& at, const std::vector<std::uint32_t>& which);
  void emit(std::uint32_t kind, const Index& at);
  [[noreturn]] void refuse(std::uint32_t kind, const Index& at, std::uint32_t number);
  bool free_here(std::uint32_t kind, const Index& at, std::uint32_t number) const;
  bool written(const Facts& facts, std::uint32_t number) const {
    for (std::uint32_t first : facts.runs)
      if (written_[first + number] != 0) return true;
    return false;
  }
  std::uint32_t device(const Facts& facts, std::uint32_t kind, const Index& at, std::uint32_t number) const {
    if (facts.by_stage) return world_.placement.of(at[facts.stage], at[facts.microbatch]);
    if (facts.replica_stride == 0) return world_.device(kind, at, number);
    const bool here = world_.placement.replica(at[facts.stage], device_) != Placement::kNone;
    return here ? device_ : world_.placement.replicas[at[facts.stage]][0];
  }
  void finish(Block& block, DeviceOrder& to);
  void refuse_same_slots(const Block& block, const std::vector<std::uint32_t>& order);
  void limit(const ItemCode& item, DeviceOrder& to);
  std::uint32_t number(const Facts& facts, const Index& at) const {
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < facts.count; ++i) result += at[i] * facts.strides[i];
    if (facts.replica_stride == 0) return result;
    const std::uint32_t replica = world_.placement.replica(at[facts.stage], device_);
    return replica == Placement::kNone ? result : result + replica * facts.replica_stride;
  }
  std::string text(std::uint32_t kind, const Index& at) const;
  void match(std::uint32_t kind, OpId op);
  [[noreturn]] void no_next(const Term& term, TermId id, const Index& at, std::uint32_t which);

  Evaluator& evaluator_;
  const Expansion& expansion_;
  const World& world_;
  const Code& code_;
  Wanted* wanted_;
  std::uint32_t device_ = 0;
  /// For every device the `on device` that hold for it: on_[first_on_[d]] .. on_[first_on_[d + 1] - 1].
  std::vector<std::uint32_t> on_;
  std::vector<std::size_t> first_on_;
  /// By op: written on its device.
  std::vector<std::uint8_t> written_;
  /// Shape: [kind].
  std::vector<Facts> facts_;
  /// Shape: [kind][index].
  std::vector<std::array<Cursors, kMaxIndices>> cursors_;
  std::vector<bool> run_;
  /// The statement and block that are being written.
  const StatementCode* statement_ = nullptr;
  Block* block_ = nullptr;
  Rational slot_;
  /// What `next` and `*` stand for in the op being written, for Wanted.
  std::vector<std::uint32_t> chosen_;
};

/// Where the text of `device` writes `op`; nothing without such a place.
std::optional<Origin> find_origin(const Expansion& expansion, std::uint32_t device, OpId op, std::uint32_t occurrence);

/// Sets the parameters of an evaluator and evaluates the lets. Errors: a diagnostic, and Stop.
void set_parameters(Evaluator& evaluator, const std::vector<Argument>& arguments);

}  // namespace stave
