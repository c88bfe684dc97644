#include "scheduler/critical_path.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "core/lanes.h"
#include "scheduler/contention/buffers.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

bool optional(const Program& program, std::uint32_t position) {
  return program.table.ops.kind(program.table.entries[position]).optional;
}

/// By message: the one before it on its edge, or kNone.
std::vector<std::uint32_t> before_on_edge(const Program& program) {
  std::vector<std::uint32_t> last(program.edges.size(), kNone);
  std::vector<std::uint32_t> result(program.messages.size(), kNone);
  for (NodeId node : program.order) {
    if (!program.is_message(node)) continue;
    std::uint32_t& before = last[program.message(node).edge.value];
    result[program.message_of(node).value] = before;
    before = program.message_of(node).value;
  }
  return result;
}

class Path {
 public:
  Path(const Program& program, const Timeline& times, const Costs& costs, const Turns& turns)
      : program_(program),
        times_(times),
        costs_(costs),
        turns_(turns),
        lanes_(program.table),
        block_of_(blocks_of(program.table)),
        before_on_edge_(before_on_edge(program)) {}

  CriticalPath all() {
    std::uint32_t last = kNone;
    for (std::uint32_t position = 0; position < program_.table.size(); ++position)
      if (!optional(program_, position) && (last == kNone || times_.end[position] > times_.end[last])) last = position;
    if (last != kNone)
      for (Step at{NodeId(last), times_.end[last]}; at.node.valid(); at = back(at)) {
        result_.nodes.push_back(at.node);
        took_.push_back(at.until - begin(at));
      }
    std::reverse(result_.nodes.begin(), result_.nodes.end());
    std::reverse(took_.begin(), took_.end());
    blame();
    return std::move(result_);
  }

 private:
  /// What lets a node start: one that has ended, and perhaps a setup after it.
  struct Cause {
    NodeId node;
    Ticks time = 0;
    Ticks setup = 0;
  };

  /// A node on the path, and until when the path goes through it.
  struct Step {
    NodeId node;
    Ticks until = 0;
  };

  /// Keeps the one that lets `follower` start last, but not after `latest`; of those the first.
  void consider(NodeId node, NodeId follower, Ticks setup, Cause& best, Ticks latest = kMaxTicks) const {
    const Ticks time = let_go(program_, lanes_, times_, node, follower) + setup;
    if (time <= latest && (!best.node.valid() || time > best.time)) best = {node, time, setup};
  }

  /// A message that had come and waited for its slot: the path goes to what was in the slot.
  bool waits_for_slot(const Step& at) const {
    return !times_.came.empty() && program_.is_message(at.node) && at.until == times_.end[at.node.value] &&
           at.until > times_.came[program_.message_of(at.node).value];
  }
  Ticks begin(const Step& at) const { return waits_for_slot(at) ? at.until : times_.start[at.node.value]; }

  std::span<const std::uint32_t> block(const std::uint32_t& position) const {
    if (block_of_.empty() || block_of_[position] == kNone) return std::span(&position, 1);
    return program_.table.blocks[block_of_[position]];
  }

  /// The node whose end lets this one start; not valid at the beginning.
  Step back(const Step& at) {
    const NodeId node = at.node;
    const Ticks start = begin(at);
    Cause best;
    if (program_.is_message(node)) {
      // With buffers a slot may be free only after the start.
      const Ticks latest = times_.came.empty() ? kMaxTicks : start;
      // Perhaps only the message before it on its edge starts then, or the one before that.
      for (NodeId on = node;;) {
        best = Cause();
        for (NodeId before : program_.waits[on.value]) consider(before, on, 0, best, latest);
        consider_turns(on, best);
        if (!times_.came.empty()) consider_room(on, start, best);
        const std::uint32_t ahead = before_on_edge_[program_.message_of(on).value];
        if ((best.node.valid() && best.time >= start) || ahead == kNone) break;
        const NodeId there = program_.node(MessageId(ahead));
        if (times_.start[there.value] < start) break;
        on = there;
      }
    } else {
      const std::span<const std::uint32_t> mine = block(node.value);
      for (std::uint32_t position : mine)
        if (const std::uint32_t before = lanes_.previous(position); before != Lanes::kNone && !same(before, position))
          consider(NodeId(before), NodeId(position), costs_.setup(program_.table, before, position), best);
      for (std::uint32_t position : mine)
        for (NodeId before : program_.waits[position]) consider(before, NodeId(position), 0, best);
      for (std::uint32_t position : mine) consider_turns(NodeId(position), best);
    }
    const Ticks from = best.node.valid() ? std::min(best.time, start) : 0;
    result_.waiting += start - from;
    if (best.setup > 0) setups_.push_back({node, best.setup});
    return {best.node, from - best.setup};
  }

  void consider_turns(NodeId node, Cause& best) const {
    for (const Turns::Turn& turn : turns_[node])
      if (!best.node.valid() || turn.until > best.time) best = {turn.before, turn.until, 0};
  }

  // Of the messages under way before it on its edge, the one whose end made room for it.
  void consider_room(NodeId message, Ticks start, Cause& best) const {
    for (std::uint32_t ahead = before_on_edge_[program_.message_of(message).value]; ahead != kNone;
         ahead = before_on_edge_[ahead]) {
      const NodeId node = program_.node(MessageId(ahead));
      if (times_.end[node.value] < start) return;
      if (times_.end[node.value] == start && (!best.node.valid() || start > best.time)) best = {node, start, 0};
    }
  }

  bool same(std::uint32_t a, std::uint32_t b) const {
    return !block_of_.empty() && block_of_[a] != kNone && block_of_[a] == block_of_[b];
  }

  void blame() {
    const OpSet& ops = program_.table.ops;
    std::vector<Blame> kinds(ops.kinds().size());
    std::map<std::pair<std::uint32_t, std::uint32_t>, Blame> pairs;
    std::map<std::uint32_t, Blame> stages;
    std::map<std::uint32_t, Blame> edges;
    Blame messages;
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
      const NodeId node = result_.nodes[i];
      const Ticks time = took_[i];
      const auto add = [&](Blame& to) {
        to.time += time;
        ++to.count;
      };
      if (program_.is_message(node)) {
        add(messages);
        add(edges[program_.message(node).edge.value]);
        continue;
      }
      const std::span<const std::uint32_t> mine = block(node.value);
      const auto kind = [&](std::uint32_t position) { return ops.kind_of(program_.table.entries[position]).value; };
      const bool pair = mine.size() == 2 && program_.table.device_of(mine[0]) == program_.table.device_of(mine[1]);
      add(pair ? pairs[{kind(mine[0]), kind(mine[1])}] : kinds[kind(node.value)]);
      add(stages[ops.stage(program_.table.entries[node.value])]);
    }
    Blame setups;
    for (const auto& [node, time] : setups_) {
      setups.time += time;
      ++setups.count;
      stages[ops.stage(program_.table.entries[node.value])].time += time;
    }
    const auto name = [&](std::uint32_t kind) { return ops.kinds()[KindId(kind)].name; };
    for (std::uint32_t k = 0; k < kinds.size(); ++k)
      if (kinds[k].count > 0) result_.kinds.push_back({kinds[k], name(k)});
    for (const auto& [both, each] : pairs)
      result_.kinds.push_back({each, name(both.first) + " with " + name(both.second)});
    if (messages.count > 0) result_.kinds.push_back({messages, "message"});
    if (setups.count > 0) result_.kinds.push_back({setups, "setup"});
    for (const auto& [stage, each] : stages) result_.stages.push_back({each, stage});
    for (const auto& [edge, each] : edges)
      result_.links.push_back({each, program_.edges[edge].source, program_.edges[edge].target});
  }

  const Program& program_;
  const Timeline& times_;
  const Costs& costs_;
  const Turns& turns_;
  const Lanes lanes_;
  const std::vector<std::uint32_t> block_of_;
  const std::vector<std::uint32_t> before_on_edge_;
  /// By the node that starts after it.
  std::vector<std::pair<NodeId, Ticks>> setups_;
  /// By node of the path.
  std::vector<Ticks> took_;
  CriticalPath result_;
};

}  // namespace

CriticalPath critical_path(const Program& program, const Timeline& timeline, const Costs& costs, const Turns& turns) {
  return Path(program, timeline, costs, turns).all();
}

std::vector<Ticks> slack(const Program& program, const Timeline& timeline, const Costs& costs, const Turns& turns) {
  const Table& table = program.table;
  Ticks makespan = 0;
  Ticks iteration = 0;
  for (std::uint32_t position = 0; position < table.size(); ++position) {
    iteration = std::max(iteration, timeline.end[position]);
    if (!optional(program, position)) makespan = std::max(makespan, timeline.end[position]);
  }
  const Lanes lanes(table);
  const std::vector<std::uint32_t> block_of = blocks_of(table);
  const std::vector<std::uint32_t> ahead = before_on_edge(program);
  std::vector<Ticks> latest_end(program.nodes(), iteration);
  for (std::uint32_t position = 0; position < table.size(); ++position)
    if (!optional(program, position)) latest_end[position] = makespan;
  std::vector<Ticks> latest_start(program.nodes(), iteration);
  // Entries of each block that are still to come.
  std::vector<std::uint32_t> left;
  for (std::uint32_t b = 0; b < table.blocks.size(); ++b)
    left.push_back(static_cast<std::uint32_t>(table.blocks[b].size()));

  const auto before = [&](NodeId node, Ticks time) {
    latest_end[node.value] = std::min(latest_end[node.value], time);
  };
  const auto give_turns = [&](NodeId node, Ticks start) {
    for (const Turns::Turn& turn : turns[node]) before(turn.before, start + timeline.end[turn.before.value] - turn.until);
  };
  const auto run = [&](std::span<const std::uint32_t> block) {
    Ticks end = iteration;
    for (std::uint32_t position : block) end = std::min(end, latest_end[position]);
    const Ticks start = end - (timeline.end[block[0]] - timeline.start[block[0]]);
    for (std::uint32_t position : block) {
      latest_start[position] = start;
      for (NodeId each : program.waits[position]) before(each, start);
      give_turns(NodeId(position), start);
      const std::uint32_t previous = lanes.previous(position);
      if (previous == Lanes::kNone) continue;
      const bool same = block.size() > 1 && block_of[previous] == block_of[position];
      if (!same) before(NodeId(previous), start - costs.setup(table, previous, position));
    }
  };
  std::vector<NodeId> order = program.order;
  // Turns go by time.
  if (!turns.empty())
    std::ranges::stable_sort(order, {}, [&](NodeId node) { return timeline.start[node.value]; });
  for (NodeId node : std::views::reverse(order)) {
    if (program.is_message(node)) {
      const Ticks length = timeline.end[node.value] - timeline.start[node.value];
      const Ticks start = std::min(latest_start[node.value], latest_end[node.value] - length);
      latest_start[node.value] = start;
      for (NodeId each : program.waits[node.value]) before(each, start);
      give_turns(node, start);
      // The one before it on its edge starts no later.
      if (const std::uint32_t m = ahead[program.message_of(node).value]; m != kNone) {
        Ticks& its = latest_start[program.node(MessageId(m)).value];
        its = std::min(its, start);
      }
    } else if (block_of.empty() || block_of[node.value] == kNone) {
      run(std::span(&node.value, 1));
    } else if (--left[block_of[node.value]] == 0) {
      run(table.blocks[block_of[node.value]]);
    }
  }
  std::vector<Ticks> result(program.nodes());
  for (std::uint32_t node = 0; node < program.nodes(); ++node) result[node] = latest_start[node] - timeline.start[node];
  return result;
}

}  // namespace stave
