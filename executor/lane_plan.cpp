#include "executor/lane_plan.h"

#include <algorithm>
#include <queue>

#include "core/lanes.h"

namespace stave {

namespace {

constexpr std::uint32_t kNone = LaneItem::kNone;

// The program's order, in which sums that run as one come together: what must follow them waits until all may run.
class Order {
 public:
  Order(const Program& program, const Plan& plan) : p_(program), plan_(plan), lanes_(program.table) {}

  std::vector<NodeId> make() {
    if (plan_.meetings.size() == 0) return p_.order;
    rank_.resize(p_.nodes());
    for (std::uint32_t i = 0; i < p_.order.size(); ++i) rank_[p_.order[i].value] = i;
    left_.assign(p_.nodes(), 0);
    for (std::uint32_t n = 0; n < p_.nodes(); ++n) {
      each_after(NodeId(n), [&](NodeId after) { ++left_[after.value]; });
    }
    here_.assign(plan_.meetings.size(), 0);
    for (std::uint32_t n = 0; n < p_.nodes(); ++n)
      if (left_[n] == 0) ready_.push({rank_[n], n});
    while (!ready_.empty()) {
      const NodeId n(ready_.top().second);
      ready_.pop();
      const std::uint32_t meeting = p_.is_message(n) ? kNone : plan_.meeting_of[n.value];
      if (meeting == kNone) {
        put(n);
      } else if (++here_[meeting] == plan_.meetings[meeting].size()) {
        for (std::uint32_t position : plan_.meetings[meeting]) put(NodeId(position));
      }
    }
    return std::move(result_);
  }

 private:
  template <class Visit>
  void each_after(NodeId n, const Visit& visit) const {
    for (NodeId after : plan_.followers[n.value]) visit(after);
    if (p_.is_message(n)) {
      const MessageId next = plan_.next[p_.message_of(n).value];
      if (next.valid()) visit(p_.node(next));
    } else if (lanes_.next(n.value) != Lanes::kNone) {
      visit(NodeId(lanes_.next(n.value)));
    }
  }

  void put(NodeId n) {
    result_.push_back(n);
    each_after(n, [&](NodeId after) {
      if (--left_[after.value] == 0) ready_.push({rank_[after.value], after.value});
    });
  }

  const Program& p_;
  const Plan& plan_;
  const Lanes lanes_;
  std::vector<std::uint32_t> rank_;
  std::vector<std::uint32_t> left_;
  std::vector<std::size_t> here_;
  using Ranked = std::pair<std::uint32_t, std::uint32_t>;
  std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>> ready_;
  std::vector<NodeId> result_;
};

class Planner {
 public:
  Planner(const Program& program, const Plan& plan, const LaneRules& rules)
      : p_(program), plan_(plan), rules_(rules), table_lanes_(program.table) {}

  Result<LanePlan> make() {
    name_lanes();
    out_.item_of.assign(p_.nodes(), kNone);
    const std::size_t lanes = out_.lanes.size();
    known_.assign(lanes * lanes, 0);
    extra_.resize(lanes);
    // Without sums that must come together, a rank issues as the program says it does.
    if (rules_.rank.valid() && plan_.meetings.size() == 0) {
      for (NodeId n : p_.issue[rules_.rank.value])
        if (Result<void> put = add(n); !put) return put.failure();
    } else {
      for (NodeId n : Order(p_, plan_).make())
        if (Result<void> put = add(n); !put) return put.failure();
    }
    return std::move(out_);
  }

 private:
  bool is_here(DeviceId d) const { return !rules_.rank.valid() || rules_.rank == d; }

  bool is_here(NodeId n) const {
    if (!p_.is_message(n)) return is_here(plan_.device[n.value]);
    const Edge& edge = p_.edges[p_.message(n).edge.value];
    return is_here(edge.source) || is_here(edge.target);
  }

  void name_lanes() {
    table_lane_.assign(table_lanes_.count(), kNone);
    for (std::uint32_t lane = 0; lane < table_lanes_.count(); ++lane) {
      const DeviceId d(table_lanes_.device(lane));
      if (!is_here(d)) continue;
      table_lane_[lane] = static_cast<std::uint32_t>(out_.lanes.size());
      out_.lanes.push_back({d, lane < p_.table.devices()});
    }
    edge_lane_.assign(p_.edges.size(), kNone);
    std::uint32_t one = kNone;
    for (std::uint32_t e = 0; e < p_.edges.size(); ++e) {
      if (!is_here(p_.edges[e].source) && !is_here(p_.edges[e].target)) continue;
      if (one == kNone || !rules_.serial) {
        one = static_cast<std::uint32_t>(out_.lanes.size());
        out_.lanes.push_back({});
      }
      edge_lane_[e] = one;
    }
  }

  std::uint32_t lane_of(NodeId n) const {
    return p_.is_message(n) ? edge_lane_[p_.message(n).edge.value] : table_lane_[table_lanes_.lane(n.value)];
  }

  Action action_of(NodeId n) {
    if (p_.is_message(n)) {
      const Edge& edge = p_.edges[p_.message(n).edge.value];
      if (!is_here(edge.source)) return Action::Receive;
      return is_here(edge.target) ? Action::Copy : Action::Send;
    }
    const std::uint32_t meeting = plan_.meeting_of.empty() ? kNone : plan_.meeting_of[n.value];
    if (meeting == kNone || plan_.meetings[meeting].size() < 2) return Action::Op;
    // Here all devices' sums are one, at the last of them.
    return rules_.rank.valid() || plan_.meetings[meeting].back() == n.value ? Action::Sum : Action::Op;
  }

  Result<void> add(NodeId n) {
    if (!is_here(n)) return {};
    LaneItem item;
    item.node = n;
    item.lane = lane_of(n);
    item.action = action_of(n);
    item.first_wait = item.end_wait = static_cast<std::uint32_t>(out_.waits.size());
    const auto index = static_cast<std::uint32_t>(out_.items.size());
    // What a message waits for beside its data is that its slot is free, which is for the receiving end to know.
    std::vector<NodeId> before;
    if (item.action != Action::Send) before.assign(p_.waits[n.value].begin(), p_.waits[n.value].end());
    if (p_.is_message(n)) before.push_back(NodeId(p_.message(n).producer));
    for (NodeId each : before) {
      if (!is_here(each)) continue;
      if (Result<void> waits = wait(item, each); !waits) return waits;
    }
    for (std::uint32_t each : extra_[item.lane]) wait(item, each);
    extra_[item.lane].clear();
    if (item.action == Action::Sum && !rules_.rank.valid()) gather(item, index);
    out_.items.push_back(item);
    out_.item_of[n.value] = index;
    return {};
  }

  // The last of sums that run as one waits for the others, and what follows those on their lanes for the last.
  void gather(LaneItem& item, std::uint32_t index) {
    for (std::uint32_t position : plan_.meetings[plan_.meeting_of[item.node.value]]) {
      if (position == item.node.value) continue;
      const std::uint32_t other = out_.item_of[position];
      wait(item, other);
      extra_[out_.items[other].lane].push_back(index);
      out_.item_of[position] = index;
    }
  }

  Result<void> wait(LaneItem& item, NodeId before) {
    const std::uint32_t other = out_.item_of[before.value];
    if (other == kNone)
      return Failure{"the program contradicts itself: " + describe(p_, item.node) + " is issued before " +
                     describe(p_, before) + ", for which it waits"};
    wait(item, other);
    return {};
  }

  void wait(LaneItem& item, std::uint32_t other) {
    LaneItem& before = out_.items[other];
    std::uint32_t& known = known_[item.lane * out_.lanes.size() + before.lane];
    // The items of a lane end in order.
    if (before.lane == item.lane || known > other) return;
    known = other + 1;
    if (before.event == kNone) before.event = out_.events++;
    out_.waits.push_back(before.event);
    item.end_wait = static_cast<std::uint32_t>(out_.waits.size());
  }

  const Program& p_;
  const Plan& plan_;
  const LaneRules& rules_;
  const Lanes table_lanes_;
  LanePlan out_;
  // By lane of the table and by edge.
  std::vector<std::uint32_t> table_lane_;
  std::vector<std::uint32_t> edge_lane_;
  // Shape: lanes x lanes. For which items of another lane, up to which number, a lane has waited already.
  std::vector<std::uint32_t> known_;
  // By lane: items that its next one must wait for.
  std::vector<std::vector<std::uint32_t>> extra_;
};

}  // namespace

Result<LanePlan> plan_lanes(const Program& program, const Plan& plan, const LaneRules& rules) {
  if (program.order.empty()) return Failure{"a program that was lowered unchecked does not run on a GPU"};
  return Planner(program, plan, rules).make();
}

}  // namespace stave
