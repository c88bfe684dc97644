#include "scheduler/pricer/straight_line.h"

#include <algorithm>
#include <limits>

#include "compiler/table_needs.h"
#include "compiler/table_walk.h"
#include "core/check.h"
#include "core/lanes.h"

namespace stave {

namespace {

constexpr std::uint32_t kZero = 0;
constexpr std::uint32_t kNobody = 1;
constexpr std::uint32_t kNone = UINT32_MAX;

std::vector<std::size_t> shape_of(const Costs& costs) {
  std::vector<std::size_t> shape;
  for (const KindTicks& kind : costs.kinds) shape.push_back(kind.values.size());
  shape.push_back(costs.pairs.size());
  for (const auto& rule : costs.setups.rules) shape.push_back(rule.values.size());
  return shape;
}

}  // namespace

/// Walks the table once, in an order in which it can run, and writes down what each entry reads and sends.
class StraightLineMaker {
 public:
  StraightLineMaker(const Schedule& schedule, const Table& table, const Costs& costs)
      : table_(table), costs_(costs), needs_(schedule, table), lanes_(table) {}

  StraightLine make() {
    result_.lanes_ = lanes_.count();
    result_.devices_ = table_.devices();
    result_.shape_ = shape_of(costs_);
    number_classes();
    find_senders();
    find_ends();
    class_of_.resize(table_.devices());
    TableWalk walk(table_, lanes_, needs_);
    const bool finishes = walk.run([&](std::span<const std::uint32_t> block) { run(block); });
    STAVE_CHECK(finishes, "a price of a table that cannot finish");
    result_.slots_ = slots_;
    const std::uint32_t most = std::max({slots_, classes_, static_cast<std::uint32_t>(result_.links_.size()) + 1});
    if (most > std::numeric_limits<std::uint16_t>::max()) return std::move(result_);
    result_.narrow_.reserve(result_.wide_.size());
    for (const auto& step : result_.wide_)
      result_.narrow_.push_back({static_cast<std::uint16_t>(step.cost), static_cast<std::uint16_t>(step.message),
                                 static_cast<std::uint16_t>(step.read), static_cast<std::uint16_t>(step.write)});
    result_.wide_ = {};
    return std::move(result_);
  }

 private:
  /// What is sent to all who need it on one lane's device: they share a slot.
  struct Sent {
    std::uint32_t consumer = 0;
    std::uint16_t payload = 0;
    /// Where the consumer lists it.
    std::uint32_t input = 0;
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

  /// Needs whose two ends lie on different lanes, by consumer and by producer.
  void find_senders() {
    std::vector<std::uint32_t> producer;
    std::vector<std::uint16_t> payload;
    sent_.first.assign(table_.size() + std::size_t(1), 0);
    inputs_.reserve(table_.size() + std::size_t(1));
    inputs_.push_back(0);
    for (std::uint32_t position = 0; position < table_.size(); ++position) {
      const auto add = [&](std::uint32_t at, std::uint16_t carries) {
        producer.push_back(at);
        payload.push_back(carries);
        ++sent_.first[at + 1];
      };
      const std::uint32_t device = lanes_.device_at(position);
      const bool computes = lanes_.computes(position);
      needs_.for_each(position, [&](std::uint32_t at, std::uint16_t carries) {
        const bool here = at >= table_.first[device] && at < table_.first[device + 1];
        if (!here)
          add(at, carries);
        else if (!lanes_.plain() && (!computes || !lanes_.computes(at)) && lanes_.lane(at) != lanes_.lane(position))
          add(at, 0);
      });
      if (const std::uint32_t before = lanes_.written_after(position); before != Lanes::kNone) add(before, 0);
      inputs_.push_back(static_cast<std::uint32_t>(producer.size()));
    }
    for (std::uint32_t position = 0; position < table_.size(); ++position)
      sent_.first[position + 1] += sent_.first[position];
    sent_.items.resize(producer.size());
    std::vector<std::uint32_t> next(sent_.first.begin(), sent_.first.end() - 1);
    for (std::uint32_t position = 0; position < table_.size(); ++position)
      for (std::uint32_t i = inputs_[position]; i < inputs_[position + 1]; ++i)
        sent_.items[next[producer[i]]++] = {position, payload[i], i};
    slot_of_.assign(producer.size(), kNobody);
  }

  /// The first and the last op of each lane that counts in the makespan.
  void find_ends() {
    first_.assign(lanes_.count(), kNone);
    last_.assign(lanes_.count(), kNone);
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane)
      for (std::uint32_t at = lanes_.head(lane); at != Lanes::kNone; at = lanes_.next(at)) {
        if (table_.ops.kind(table_.entries[at]).optional) continue;
        if (first_[lane] == kNone) first_[lane] = at;
        last_[lane] = at;
      }
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
      if (first_[lane] == kNone) {
        ends_of_.push_back(kNone);
        continue;
      }
      ends_of_.push_back(static_cast<std::uint32_t>(result_.ends_.size()));
      const std::uint32_t first = slots_++;
      result_.ends_.push_back({lanes_.device(lane), first, slots_++});
    }
    readers_.resize(slots_, 0);
  }

  std::uint32_t new_slot(std::uint32_t readers) {
    if (free_.empty()) {
      readers_.push_back(readers);
      return slots_++;
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    readers_[slot] = readers;
    return slot;
  }

  void step(std::uint32_t lane, std::uint32_t cost, std::uint32_t read, std::uint32_t write, std::uint32_t message) {
    if (result_.runs_.empty() || result_.runs_.back().lane != lane) result_.runs_.push_back({lane, 0});
    ++result_.runs_.back().count;
    result_.wide_.push_back({cost, message, read, write});
  }

  std::uint32_t take(std::uint32_t slot) {
    if (slot > kNobody && --readers_[slot] == 0) free_.push_back(slot);
    return slot;
  }

  void run(std::span<const std::uint32_t> block) {
    const std::uint32_t lane = lanes_.lane(block[0]);
    if (block.size() == 1) return run_one(lane, block, class_of(block[0]));
    if (lanes_.lane(block[1]) == lane) return run_one(lane, block, pair_class(block[0]));
    // Each lane tells all the others when it could start.
    std::vector<std::uint32_t> ready;
    for (std::uint32_t position : block) {
      const std::uint32_t mine = lanes_.lane(position);
      read_inputs(mine, std::span(&position, 1), false);
      ready.push_back(new_slot(static_cast<std::uint32_t>(block.size())));
      step(mine, 0, kZero, ready.back(), 0);
    }
    for (std::uint32_t position : block) {
      const std::uint32_t mine = lanes_.lane(position);
      for (std::uint32_t slot : ready) step(mine, 0, take(slot), kNobody, 0);
      finish(mine, std::span(&position, 1), class_of(position), kZero);
    }
  }

  void run_one(std::uint32_t lane, std::span<const std::uint32_t> block, std::uint32_t cost) {
    finish(lane, block, cost, read_inputs(lane, block, true));
  }

  /// Waits for the inputs but the last, whose slot is returned where `keep_last`.
  std::uint32_t read_inputs(std::uint32_t lane, std::span<const std::uint32_t> block, bool keep_last) {
    if (const std::uint32_t before = lanes_.previous(block[0]); !costs_.setups.empty() && before != Lanes::kNone)
      if (const std::uint32_t setup = setup_class(before, block[0]); setup != 0) step(lane, setup, kZero, kNobody, 0);
    std::uint32_t last = kZero;
    for (std::uint32_t position : block)
      for (std::uint32_t i = inputs_[position]; i < inputs_[position + 1]; ++i) {
        if (last != kZero) step(lane, 0, take(last), kNobody, 0);
        last = slot_of_[i];
      }
    if (keep_last || last == kZero) return last;
    step(lane, 0, take(last), kNobody, 0);
    return kZero;
  }

  /// The costly step, and all that the block sends.
  void finish(std::uint32_t lane, std::span<const std::uint32_t> block, std::uint32_t cost, std::uint32_t read) {
    const std::uint32_t ends = ends_of_[lane];
    const auto has = [&](std::uint32_t position) {
      return position != kNone && std::find(block.begin(), block.end(), position) != block.end();
    };
    if (ends != kNone && has(first_[lane])) {
      step(lane, 0, take(read), result_.ends_[ends].first, 0);
      read = kZero;
    }
    std::uint32_t write = kNobody;
    std::uint32_t message = 0;
    take(read);
    const std::size_t at = result_.wide_.size();
    step(lane, cost, read, kNobody, 0);
    const auto send = [&](std::uint32_t slot, std::uint32_t carries) {
      if (write == kNobody) {
        write = slot;
        message = carries;
        result_.wide_[at].write = slot;
        result_.wide_[at].message = carries;
        return;
      }
      step(lane, 0, kZero, slot, carries);
    };
    if (ends != kNone && has(last_[lane])) send(result_.ends_[ends].last, 0);
    for (std::uint32_t position : block) send_all(position, send);
  }

  template <class Send>
  void send_all(std::uint32_t position, const Send& send) {
    const std::uint32_t begin = sent_.first[position];
    const std::uint32_t end = sent_.first[position + 1];
    if (begin == end) return;
    const std::uint32_t source = lanes_.device_at(position);
    for (std::uint32_t i = begin; i < end; ++i) {
      const Sent& first = sent_.items[i];
      if (slot_of_[first.input] != kNobody) continue;
      const std::uint32_t target = lanes_.device_at(first.consumer);
      // Few needs share a producer, so that a search is as good as a map.
      std::uint32_t readers = 0;
      const auto same = [&](const Sent& other) {
        return other.payload == first.payload && lanes_.device_at(other.consumer) == target;
      };
      for (std::uint32_t k = i; k < end; ++k) readers += same(sent_.items[k]);
      const std::uint32_t slot = new_slot(readers);
      for (std::uint32_t k = i; k < end; ++k)
        if (same(sent_.items[k])) slot_of_[sent_.items[k].input] = slot;
      send(slot, target == source ? 0 : message_class(first.payload, source, target));
    }
  }

  std::uint32_t message_class(std::uint16_t payload, std::uint32_t source, std::uint32_t target) {
    for (const auto& [of_payload, to, number] : class_of_[source])
      if (of_payload == payload && to == target) return number;
    result_.links_.push_back({payload, source, target});
    class_of_[source].push_back({payload, target, static_cast<std::uint32_t>(result_.links_.size())});
    return static_cast<std::uint32_t>(result_.links_.size());
  }

  std::uint32_t class_of(std::uint32_t position) const {
    const OpId op = table_.entries[position];
    const KindId kind = table_.ops.kind_of(op);
    const KindTicks& ticks = costs_.kinds[kind];
    const std::size_t value = ticks.values.size() == 1 ? 0 : ticks.at(table_.ops.name(op));
    return first_class_[kind.value] + static_cast<std::uint32_t>(value);
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
  TableNeeds needs_;
  Lanes lanes_;
  StraightLine result_;

  std::uint32_t classes_ = 1;
  std::vector<std::uint32_t> first_class_;
  std::uint32_t first_pair_ = 0;
  std::vector<std::uint32_t> first_setup_;

  /// By producer; and by consumer, inputs_[p] .. inputs_[p + 1] - 1 with the slot of each once it is sent.
  Rows<Sent> sent_;
  std::vector<std::uint32_t> inputs_;
  std::vector<std::uint32_t> slot_of_;
  /// By lane.
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> last_;
  std::vector<std::uint32_t> ends_of_;

  std::uint32_t slots_ = 2;
  /// By slot: who has still to read it.
  std::vector<std::uint32_t> readers_;
  std::vector<std::uint32_t> free_;
  struct MessageClass {
    std::uint16_t payload = 0;
    std::uint32_t target = 0;
    std::uint32_t number = 0;
  };
  /// By source.
  std::vector<std::vector<MessageClass>> class_of_;
};

StraightLine::StraightLine(const Schedule& schedule, const Table& table, const Costs& costs)
    : StraightLine(StraightLineMaker(schedule, table, costs).make()) {}

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
  for (const Link& link : links_) result.push_back(costs.message.of(link.payload, link.source, link.target));
  return result;
}

}  // namespace stave
