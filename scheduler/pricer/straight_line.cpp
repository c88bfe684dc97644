#include "scheduler/pricer/straight_line.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "core/fetch.h"
#include "core/lanes.h"

namespace stave {

namespace {

constexpr std::uint32_t kZero = 0;
constexpr std::uint32_t kNobody = 1;
constexpr std::uint32_t kNone = UINT32_MAX;
/// How many entries ahead of their turn memory is fetched.
constexpr std::size_t kAhead = 16;

std::vector<std::size_t> shape_of(const Costs& costs) {
  std::vector<std::size_t> shape;
  for (const KindTicks& kind : costs.kinds) shape.push_back(kind.values.size());
  shape.push_back(costs.pairs.size());
  shape.push_back(costs.message.sizes() == nullptr ? 1 : costs.message.sizes()->count);
  for (const auto& rule : costs.setups.rules) shape.push_back(rule.values.size());
  return shape;
}

}  // namespace

/// Goes through an order in which the table can run from its end to its start: so the first reader of a value that it
/// meets is the last, and takes a slot for it, which the producer gives back.
class StraightLineMaker {
 public:
  StraightLineMaker(const Table& table, const Lanes& lanes, const TableNeeds& needs, const RunOrder& order,
                    const Costs& costs)
      : table_(table), costs_(costs), needs_(needs), order_(order), lanes_(lanes), block_of_(blocks_of(table)) {}

  StraightLine make() {
    result_.lanes_ = lanes_.count();
    result_.devices_ = table_.devices();
    result_.shape_ = shape_of(costs_);
    number_classes();
    find_firsts();
    if (!write(result_.narrow_)) {
      const bool fits = write(result_.wide_);
      STAVE_CHECK(fits, "too many values between the lanes of a table");
    }
    return std::move(result_);
  }

 private:
  /// A value on its way from the op that makes it to those of one device that need it, or from one lane to another.
  struct Slot {
    std::uint16_t payload = 0;
    std::uint16_t target = 0;
    /// The class of its message; 0 on one device.
    std::uint32_t message = 0;
    /// Of the same producer; or of the free ones.
    std::uint32_t next = kNone;
  };
  struct Send {
    std::uint32_t slot = kNobody;
    std::uint32_t message = 0;
  };

  /// Class 0 costs nothing; then the values of each kind, of each pair, of each setup.
  void number_classes() {
    classes_ = 1;
    for (const KindTicks& kind : costs_.kinds) {
      first_class_.push_back(classes_);
      classes_ += static_cast<std::uint32_t>(kind.values.size());
    }
    first_pair_ = classes_;
    classes_ += static_cast<std::uint32_t>(costs_.pairs.size());
    for (const auto& rule : costs_.setups.rules) {
      first_setup_.push_back(classes_);
      classes_ += static_cast<std::uint32_t>(rule.values.size());
    }
  }

  bool counts(std::uint32_t position) const { return !table_.ops.kind(table_.entries[position]).optional; }

  /// The first op of each lane that counts in the makespan.
  void find_firsts() {
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
      std::uint32_t at = lanes_.head(lane);
      while (at != Lanes::kNone && !counts(at)) at = lanes_.next(at);
      first_.push_back(at);
    }
  }

  /// False if a number does not fit into the steps: then what has been written is taken back.
  template <class Number>
  bool write(std::vector<LaneStep<Number>>& steps) {
    result_.runs_.clear();
    result_.ends_.clear();
    result_.links_.clear();
    class_of_.assign(table_.devices(), {});
    slots_.assign(2, Slot());
    first_free_ = kNone;
    sent_.assign(table_.size(), kNone);
    last_.assign(lanes_.count(), kNone);
    ends_of_.assign(lanes_.count(), kNone);
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
      if (first_[lane] == kNone) continue;
      ends_of_[lane] = static_cast<std::uint32_t>(result_.ends_.size());
      result_.ends_.push_back({lanes_.device(lane), new_slot({}), new_slot({})});
    }
    steps.reserve(table_.size() + 2 * std::size_t(lanes_.count()));
    const bool plain = lanes_.plain() && block_of_.empty() && costs_.setups.empty();
    for (std::size_t i = order_.size(); i-- > 0 && slots_.size() <= std::numeric_limits<Number>::max();) {
      fetch_before(i);
      const std::uint32_t lane = lanes_.lane(order_[i]);
      if (plain && order_[i] != first_[lane] && last_[lane] != kNone)
        run_alone(steps, lane, order_[i]);
      else
        run(steps, order_[i]);
    }
    result_.slots_ = static_cast<std::uint32_t>(slots_.size());
    const std::size_t most = std::max({slots_.size(), std::size_t(classes_), result_.links_.size() + 1});
    if (most > std::numeric_limits<Number>::max()) {
      steps = {};
      return false;
    }
    return true;
  }

  /// Entries that follow each other in time lie far apart in every array: of those to come everything is fetched, each
  /// once what leads to it has come.
  void fetch_before(std::size_t i) const {
    if (i < 3 * kAhead) return;
    const std::uint32_t third = order_[i - 3 * kAhead];
    fetch(needs_.rows().first, third);
    fetch(table_.entries, third);
    fetch(sent_, third);
    fetch(needs_[order_[i - 2 * kAhead]].data());
    for (const TableNeed& need : needs_[order_[i - kAhead]]) fetch(sent_, need.position);
  }

  std::uint32_t new_slot(const Slot& slot) {
    if (first_free_ == kNone) {
      slots_.push_back(slot);
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t mine = first_free_;
    first_free_ = slots_[mine].next;
    slots_[mine] = slot;
    return mine;
  }

  void give_back(std::uint32_t slot) {
    slots_[slot].next = first_free_;
    first_free_ = slot;
  }

  template <class Number>
  void step(std::vector<LaneStep<Number>>& steps, std::uint32_t lane, std::uint32_t cost, std::uint32_t read,
            const Send& send) {
    if (result_.runs_.empty() || result_.runs_.back().lane != lane) result_.runs_.push_back({lane, 0});
    ++result_.runs_.back().count;
    steps.push_back({static_cast<Number>(cost), static_cast<Number>(send.message), static_cast<Number>(read),
                     static_cast<Number>(send.slot)});
  }

  /// The steps of an entry between the first and the last of a device that has one lane, no blocks and no setups, which
  /// nearly all are: what `run` comes to there.
  template <class Number>
  void run_alone(std::vector<LaneStep<Number>>& steps, std::uint32_t device, std::uint32_t position) {
    Send send;
    if (const std::uint32_t slot = sent_[position]; slot != kNone) {
      for (std::uint32_t more = slots_[slot].next; more != kNone;) {
        const std::uint32_t next = slots_[more].next;
        step(steps, device, 0, kZero, {more, slots_[more].message});
        give_back(more);
        more = next;
      }
      send = {slot, slots_[slot].message};
      give_back(slot);
    }
    std::uint32_t cost = class_of(position);
    for (const TableNeed& need : needs_[position]) {
      if (need.device == device) continue;
      step(steps, device, cost, slot_of(need, device), send);
      cost = 0;
      send = {};
    }
    if (cost != 0) step(steps, device, cost, kZero, send);
  }

  /// The steps of an entry, or of the block that it is the first of; the last step first.
  template <class Number>
  void run(std::vector<LaneStep<Number>>& steps, const std::uint32_t& position) {
    const std::uint32_t lane = lanes_.lane(position);
    std::span<const std::uint32_t> block(&position, 1);
    if (!block_of_.empty() && block_of_[position] != kNone) block = table_.blocks[block_of_[position]];
    if (block.size() == 1 || lanes_.lane(block[1]) == lane) {
      take_sends(lane, block);
      find_inputs(lane, block);
      std::uint32_t last = kZero;
      if (!inputs_.empty()) {
        last = inputs_.back();
        inputs_.pop_back();
      }
      compute(steps, lane, block, block.size() == 1 ? class_of(position) : pair_class(position), last);
      return read_inputs(steps, lane, block[0]);
    }
    // Each lane tells all the others when it could start.
    std::vector<std::uint32_t> ready;
    for (std::size_t i = 0; i < block.size(); ++i) ready.push_back(new_slot({}));
    for (std::size_t i = block.size(); i-- > 0;) {
      const std::uint32_t mine = lanes_.lane(block[i]);
      take_sends(mine, block.subspan(i, 1));
      compute(steps, mine, block.subspan(i, 1), class_of(block[i]), kZero);
      for (std::uint32_t slot : ready) step(steps, mine, 0, slot, {});
    }
    for (std::size_t i = block.size(); i-- > 0;) {
      const std::uint32_t mine = lanes_.lane(block[i]);
      step(steps, mine, 0, kZero, {ready[i], 0});
      give_back(ready[i]);
      find_inputs(mine, block.subspan(i, 1));
      read_inputs(steps, mine, block[i]);
    }
  }

  /// Into `sends_`: all that a block sends, whose slots are free from here on.
  void take_sends(std::uint32_t lane, std::span<const std::uint32_t> block) {
    sends_.clear();
    for (const std::uint32_t position : block) {
      if (last_[lane] == kNone && counts(position)) {
        last_[lane] = position;
        sends_.push_back({result_.ends_[ends_of_[lane]].last, 0});
      }
      for (std::uint32_t slot = sent_[position]; slot != kNone;) {
        const Slot& mine = slots_[slot];
        const std::uint32_t next = mine.next;
        sends_.push_back({slot, mine.message});
        give_back(slot);
        slot = next;
      }
    }
  }

  /// Into `inputs_`: the slots of all that a block needs of other lanes.
  void find_inputs(std::uint32_t lane, std::span<const std::uint32_t> block) {
    inputs_.clear();
    const std::uint32_t device = lanes_.device(lane);
    for (const std::uint32_t position : block) {
      for (const TableNeed& need : needs_[position]) {
        if (need.device != device || is_beside(need.position, position)) inputs_.push_back(slot_of(need, device));
      }
      if (const std::uint32_t before = lanes_.written_after(position); before != Lanes::kNone)
        inputs_.push_back(slot_of({before, static_cast<std::uint16_t>(device), 0}, device));
    }
  }

  /// Whether two entries of one device are on two lanes of it.
  bool is_beside(std::uint32_t one, std::uint32_t other) const {
    return !lanes_.plain() && lanes_.lane(one) != lanes_.lane(other);
  }

  /// The slot in which `target` finds what it needs: on one device it is told of the end alone.
  std::uint32_t slot_of(const TableNeed& need, std::uint32_t target) {
    const bool crosses = need.device != target;
    const std::uint16_t payload = crosses ? need.payload : 0;
    std::uint32_t& first = sent_[need.position];
    for (std::uint32_t slot = first; slot != kNone; slot = slots_[slot].next)
      if (slots_[slot].payload == payload && slots_[slot].target == target) return slot;
    const std::uint32_t message = crosses ? message_class(need, target) : 0;
    return first = new_slot({payload, static_cast<std::uint16_t>(target), message, first});
  }

  /// The costly step of a block, with `sends_`.
  template <class Number>
  void compute(std::vector<LaneStep<Number>>& steps, std::uint32_t lane, std::span<const std::uint32_t> block,
               std::uint32_t cost, std::uint32_t read) {
    for (std::size_t i = sends_.size(); i-- > 1;) step(steps, lane, 0, kZero, sends_[i]);
    const bool starts = std::find(block.begin(), block.end(), first_[lane]) != block.end();
    step(steps, lane, cost, starts ? kZero : read, sends_.empty() ? Send() : sends_[0]);
    if (starts) step(steps, lane, 0, read, {result_.ends_[ends_of_[lane]].first, 0});
  }

  /// Waits for `inputs_`, after the setup.
  template <class Number>
  void read_inputs(std::vector<LaneStep<Number>>& steps, std::uint32_t lane, std::uint32_t position) {
    for (const std::uint32_t slot : inputs_) step(steps, lane, 0, slot, {});
    if (costs_.setups.empty()) return;
    const std::uint32_t before = lanes_.previous(position);
    if (before == Lanes::kNone) return;
    if (const std::uint32_t setup = setup_class(before, position); setup != 0) step(steps, lane, setup, kZero, {});
  }

  std::uint32_t message_class(const TableNeed& need, std::uint32_t target) {
    // Though it may not matter in these costs.
    const std::uint32_t size = costs_.message.size_of(table_.ops, table_.entries[need.position]);
    std::vector<MessageClass>& classes = class_of_[need.device];
    auto mine = std::find_if(classes.begin(), classes.end(), [&](const MessageClass& each) {
      return each.payload == need.payload && each.target == target;
    });
    if (mine == classes.end()) mine = classes.insert(mine, {need.payload, target, {}});
    if (size >= mine->by_size.size()) mine->by_size.resize(size + std::size_t(1), 0);
    std::uint32_t& number = mine->by_size[size];
    if (number == 0) {
      result_.links_.push_back({need.payload, need.device, target, size});
      number = static_cast<std::uint32_t>(result_.links_.size());
    }
    return number;
  }

  std::uint32_t class_of(std::uint32_t position) const {
    const OpId op = table_.entries[position];
    const KindId kind = table_.ops.kind_of(op);
    const KindTicks& ticks = costs_.kinds[kind];
    const std::uint32_t first = first_class_[kind.value];
    return ticks.values.size() == 1 ? first : first + static_cast<std::uint32_t>(ticks.at(table_.ops.name(op)));
  }

  std::uint32_t pair_class(std::uint32_t position) const {
    const auto found = std::lower_bound(costs_.pairs.begin(), costs_.pairs.end(),
                                        std::pair(table_.entries[position], Ticks(0)));
    return first_pair_ + static_cast<std::uint32_t>(found - costs_.pairs.begin());
  }

  std::uint32_t setup_class(std::uint32_t before, std::uint32_t after) const {
    const OpId one = table_.entries[before];
    const OpId next = table_.entries[after];
    for (std::size_t i = 0; i < costs_.setups.rules.size(); ++i) {
      const auto& rule = costs_.setups.rules[i];
      if (rule.before != table_.ops.kind_of(one) || rule.after != table_.ops.kind_of(next)) continue;
      const std::size_t value =
          rule.stages == 0 ? 0 : std::size_t(table_.ops.stage(next)) * rule.stages + table_.ops.stage(one);
      return first_setup_[i] + static_cast<std::uint32_t>(value);
    }
    return 0;
  }

  const Table& table_;
  const Costs& costs_;
  const TableNeeds& needs_;
  const RunOrder& order_;
  const Lanes& lanes_;
  const std::vector<std::uint32_t> block_of_;
  StraightLine result_;

  std::uint32_t classes_ = 1;
  std::vector<std::uint32_t> first_class_;
  std::uint32_t first_pair_ = 0;
  std::vector<std::uint32_t> first_setup_;

  /// By lane: the ends of what counts, and where the result has them.
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> last_;
  std::vector<std::uint32_t> ends_of_;

  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;
  /// By position: the first slot of what it sends.
  std::vector<std::uint32_t> sent_;
  /// Of the block in hand.
  std::vector<Send> sends_;
  std::vector<std::uint32_t> inputs_;

  struct MessageClass {
    std::uint16_t payload = 0;
    std::uint32_t target = 0;
    /// Their numbers; 0 of a size that nobody has sent yet.
    std::vector<std::uint32_t> by_size;
  };
  /// By source.
  std::vector<std::vector<MessageClass>> class_of_;
};

StraightLine::StraightLine(const Table& table, const TableNeeds& needs, const RunOrder& order, const Costs& costs)
    : StraightLine(StraightLineMaker(table, Lanes(table), needs, order, costs).make()) {}

StraightLine::StraightLine(const Schedule& schedule, const Table& table, const Costs& costs) {
  const TableNeeds needs(schedule, table);
  const Lanes lanes(table);
  const std::optional<RunOrder> order = run_order(table, lanes, needs);
  STAVE_CHECK(order, "a price of a table that cannot finish");
  *this = StraightLineMaker(table, lanes, needs, *order, costs).make();
}

std::vector<Ticks> StraightLine::classes(const Costs& costs) const {
  STAVE_CHECK(shape_of(costs) == shape_, "costs of another shape than those of the table");
  std::vector<Ticks> result = {0};
  for (const KindTicks& kind : costs.kinds) result.insert(result.end(), kind.values.begin(), kind.values.end());
  for (const auto& [unused, ticks] : costs.pairs) result.push_back(ticks);
  for (const auto& rule : costs.setups.rules) result.insert(result.end(), rule.values.begin(), rule.values.end());
  return result;
}

std::vector<Ticks> StraightLine::messages(const Costs& costs) const {
  std::vector<Ticks> result = {0};
  for (const Link& link : links_) result.push_back(costs.message.of(link.payload, link.source, link.target, link.size));
  return result;
}

}  // namespace stave
