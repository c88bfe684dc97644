#include "scheduler/contention/ahead.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/fetch.h"
#include "core/lanes.h"
#include "scheduler/contention/event_queue.h"
#include "scheduler/contention/sharing/line.h"
#include "scheduler/order/ready_set.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Goes along the lanes of ops and the edges, each as far as ends are known. A lane waits for one end at a time, and its
/// number is kept in the place of that end: nothing is built before, and what is looked at often stays in the cache.
class Ahead {
 public:
  Ahead(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs, bool shares,
        const SimulationRules& rules, const Contention& contention)
      : program_(program),
        lengths_(lengths),
        costs_(costs),
        contention_(contention),
        shares_(shares),
        rendezvous_(rules.rendezvous),
        lanes_of_(program.table),
        block_of_(blocks_of(program.table)),
        blocks_(program.table.blocks.size()),
        lanes_(lanes_of_.count() + program.edges.size()),
        messages_(program.messages.size()),
        links_(shares ? contention.links : 0),
        ready_(static_cast<std::uint32_t>(program.messages.size())) {
    times_.ticks_per_unit = costs.ticks_per_unit;
    times_.unit = costs.unit;
    times_.start.resize(program.nodes());
    times_.end.assign(program.nodes(), kUnknown);
    if (shares) times_.asked.resize(program.messages.size());
    line_up();
  }

  // At each moment all links that are free again; then the messages that ask for theirs, in the order of issue, and
  // after each what that brings about at once.
  Timeline run() {
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) go_on(lane);
    while (true) {
      wake_lanes();
      if (events_.is_due()) {
        take(events_.take_due());
      } else if (const std::uint32_t message = ready_.first(); message != ReadySet::kNone) {
        ready_.erase(message);
        ask(message);
      } else if (events_.advance()) {
        now_ = events_.now();
      } else {
        break;
      }
    }
    STAVE_CHECK(done_ == program_.nodes(), "a simulation with contention does not finish");
    return std::move(times_);
  }

 private:
  // In place of an end that is not known: that no lane waits for it, or below that, the last one that does.
  static constexpr Ticks kUnknown = -1;
  static Ticks code_of(std::uint32_t lane) { return kUnknown - 1 - static_cast<Ticks>(lane); }
  static std::uint32_t lane_of(Ticks code) { return static_cast<std::uint32_t>(kUnknown - 1 - code); }

  /// What comes next on a lane of ops, or on an edge, and what is known of when it may start.
  struct Lane {
    std::uint32_t head = kNone;
    /// Index into Program::waits: the first whose end it has not seen.
    std::uint32_t wait = 0;
    /// The latest of what it has seen.
    Ticks ready = 0;
    /// Which lane waits for the same end, coded as an end.
    Ticks next_waiting = kUnknown;
  };
  /// Of a message: its edge, and the next one there. Beside each other for the sake of the cache.
  struct OnEdge {
    std::uint32_t edge = 0;
    std::uint32_t next = kNone;
  };
  struct Block {
    std::uint32_t seen = 0;
    Ticks ready = 0;
  };
  struct Event {
    Ticks time = 0;
    /// A link that is free again, or a message that asks.
    std::uint32_t number = 0;
    bool is_link = false;
  };
  struct Link {
    Ticks busy_until = 0;
    bool will_wake = false;
    Line line;
  };

  void line_up() {
    std::vector<std::uint32_t> last(program_.edges.size(), kNone);
    for (std::uint32_t lane = 0; lane < lanes_of_.count(); ++lane) set_head(lanes_[lane], lanes_of_.head(lane), 0);
    for (std::uint32_t m = 0; m < program_.messages.size(); ++m) {
      const std::uint32_t edge = program_.messages[m].edge.value;
      const std::uint32_t before = std::exchange(last[edge], m);
      messages_[m].edge = edge;
      if (before == kNone)
        set_head(lanes_[lanes_of_.count() + edge], program_.node(MessageId(m)).value, 0);
      else
        messages_[before].next = m;
    }
  }

  void set_head(Lane& lane, std::uint32_t node, Ticks ready) {
    lane.head = node;
    lane.ready = ready;
    if (node != kNone) lane.wait = program_.waits.first[node];
  }

  // --- memory: what comes next on hundreds of lanes is in as many places, too many for a processor to see

  /// What the lane of an op will look at, a line of cache further on.
  void fetch_after(std::uint32_t node, std::size_t wait) const {
    fetch(lengths_, node + 8);
    fetch(times_.start, node + 8);
    fetch(times_.end, node + 8);
    fetch(program_.waits.first, node + 16);
    fetch(program_.waits.items, wait + 16);
  }
  /// What the edges will look at: they go through the messages together, in about the order of their numbers.
  void fetch_waits(std::uint32_t message) const {
    const std::size_t soon = message + 2 * program_.edges.size();
    const std::size_t later = soon + 2 * program_.edges.size();
    if (later >= program_.nodes()) return;
    fetch(program_.waits.first, later);
    fetch(program_.waits.items, program_.waits.first[soon]);
  }
  /// Of a message that asks now.
  void fetch_message(std::uint32_t number) const {
    const std::uint32_t node = program_.table.size() + number;
    fetch(messages_, number);
    fetch(lengths_, node);
    fetch(times_.asked, number);
    fetch(times_.start, node);
    fetch(times_.end, node);
  }

  // --- what is known

  std::uint32_t block_of(std::uint32_t node) const {
    return block_of_.empty() || node >= program_.table.size() ? kNone : block_of_[node];
  }

  /// Goes along a lane as far as starts are known; what that makes known to other lanes is left to wake_lanes().
  void go_on(std::uint32_t number) {
    Lane& lane = lanes_[number];
    while (lane.head != kNone && sees_all(lane, number)) {
      const std::uint32_t node = lane.head;
      if (node >= program_.table.size()) return will_ask(node, lane.ready);
      const std::uint32_t block = block_of(node);
      if (block != kNone) {
        if (!joins(lane, block)) return;
        continue;
      }
      const Ticks end = lane.ready + lengths_[node];
      fetch_after(node, lane.wait);
      settle(node, lane.ready, end);
      advance(lane, end);
    }
  }

  /// Has all that the head waits for an end? If not, the lane waits for the first that has none.
  bool sees_all(Lane& lane, std::uint32_t number) {
    const std::uint32_t last = program_.waits.first[lane.head + 1];
    for (; lane.wait < last; ++lane.wait) {
      const std::uint32_t before = program_.waits.items[lane.wait].value;
      Ticks& end = times_.end[before];
      if (end >= 0) {
        lane.ready = std::max(lane.ready, end);
      } else if (const std::uint32_t block = block_of(before); block == kNone || block != block_of(lane.head)) {
        lane.next_waiting = std::exchange(end, code_of(number));
        return false;
      }
    }
    return true;
  }

  void settle(std::uint32_t node, Ticks start, Ticks end) {
    ++done_;
    times_.start[node] = start;
    for (Ticks code = std::exchange(times_.end[node], end); code != kUnknown;) {
      woken_.push_back(lane_of(code));
      code = lanes_[lane_of(code)].next_waiting;
    }
  }

  /// To what comes after the op that is at its head, which ends then.
  void advance(Lane& lane, Ticks end) {
    const std::uint32_t before = lane.head;
    const std::uint32_t next = lanes_of_.next(before);
    set_head(lane, next, next == kNone ? end : end + costs_.setup(program_.table, before, next));
  }

  void wake_lanes() {
    while (!woken_.empty()) {
      const std::uint32_t lane = woken_.back();
      woken_.pop_back();
      go_on(lane);
    }
  }

  /// All of a block starts when the last of its ops may. Whether the lane can go on.
  bool joins(Lane& lane, std::uint32_t number) {
    Block& block = blocks_[number];
    const std::span<const std::uint32_t> ops = program_.table.blocks[number];
    block.ready = std::max(block.ready, lane.ready);
    if (++block.seen < ops.size()) {
      const std::uint32_t next = lanes_of_.next(lane.head);
      if (next == kNone || block_of(next) != number) return false;
      set_head(lane, next, lane.ready);
      return true;
    }
    const Ticks end = block.ready + lengths_[ops.front()];
    for (const std::uint32_t op : ops) {
      settle(op, block.ready, end);
      const std::uint32_t at = lanes_of_.lane(op);
      if (lanes_[at].head != op) continue;
      advance(lanes_[at], end);
      if (&lanes_[at] != &lane) woken_.push_back(at);
    }
    return true;
  }

  // --- messages

  std::span<const std::uint32_t> links_of(std::uint32_t edge) const {
    return shares_ ? contention_.links_of_edge[edge] : std::span<const std::uint32_t>();
  }

  void will_ask(std::uint32_t node, Ticks time) {
    const std::uint32_t number = node - program_.table.size();
    if (time <= now_) return ready_.insert(number);
    events_.push({time, number, false});
  }

  void ask(std::uint32_t number) {
    const std::uint32_t edge = messages_[number].edge;
    if (shares_) times_.asked[number] = now_;
    const auto links = links_of(edge);
    if (std::ranges::all_of(links, [&](std::uint32_t l) { return links_[l].line.empty() && is_free(links_[l]); }))
      return start(number, edge);
    for (const std::uint32_t link : links) {
      links_[link].line.push({number, edge});
      if (!is_free(links_[link])) will_wake(link);
    }
  }

  bool is_free(const Link& link) const { return link.busy_until <= now_; }

  void will_wake(std::uint32_t number) {
    Link& link = links_[number];
    if (!std::exchange(link.will_wake, true)) events_.push({link.busy_until, number, true});
  }

  void take(const Event& event) {
    if (!event.is_link) {
      fetch_message(event.number);
      return ready_.insert(event.number);
    }
    Link& link = links_[event.number];
    link.will_wake = false;
    if (link.line.empty()) return;
    // Another link may have been freed in this same moment, and have started its first.
    if (!is_free(link)) return will_wake(event.number);
    const Waiting first = link.line.front();
    const auto links = links_of(first.edge);
    if (!std::ranges::all_of(links, [&](std::uint32_t l) {
          return is_free(links_[l]) && links_[l].line.front().message == first.message;
        }))
      return;
    for (const std::uint32_t each : links) links_[each].line.pop();
    start(first.message, first.edge);
  }

  void start(std::uint32_t number, std::uint32_t edge) {
    const std::uint32_t node = program_.table.size() + number;
    const Ticks length = lengths_[node];
    const Ticks end = now_ + length;
    // In its latency it holds no link.
    const Ticks latency = contention_.latency.empty() ? 0 : std::min(length, contention_.latency[edge]);
    for (const std::uint32_t link : links_of(edge)) {
      links_[link].busy_until = end - latency;
      if (!links_[link].line.empty()) will_wake(link);
    }
    settle(node, now_, end);
    fetch_waits(node);
    const std::uint32_t lane = lanes_of_.count() + edge;
    const std::uint32_t next = messages_[number].next;
    set_head(lanes_[lane], next == kNone ? kNone : program_.table.size() + next, rendezvous_ ? end : now_);
    woken_.push_back(lane);
  }

  const Program& program_;
  const std::vector<Ticks>& lengths_;
  const Costs& costs_;
  const Contention& contention_;
  const bool shares_;
  const bool rendezvous_;
  const Lanes lanes_of_;
  const std::vector<std::uint32_t> block_of_;
  std::vector<Block> blocks_;
  /// Those of ops, then the edges.
  std::vector<Lane> lanes_;
  std::vector<OnEdge> messages_;
  std::vector<Link> links_;
  EventQueue<Event> events_;
  /// Messages that ask now.
  ReadySet ready_;
  /// Lanes of which something has become known.
  std::vector<std::uint32_t> woken_;
  Ticks now_ = 0;
  std::uint32_t done_ = 0;
  Timeline times_;
};

}  // namespace

bool is_known_ahead(Sharing sharing, const SimulationRules& rules, const Contention& contention) {
  return info(sharing).is_known_ahead && !rules.blocking && !rules.buffered_bytes && !contention.slows_down();
}

Timeline simulate_ahead(const Program& program, const std::vector<Ticks>& lengths, const Costs& costs, Sharing sharing,
                        const SimulationRules& rules, const Contention& contention) {
  return Ahead(program, lengths, costs, info(sharing).takes_turns, rules, contention).run();
}

}  // namespace stave
