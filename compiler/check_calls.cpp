#include "compiler/check_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace stave {

namespace {

/// Most expressions inside each other, functions included.
constexpr std::uint32_t kMaxTotalDepth = 1000;

}  // namespace

void check_calls(const Code& code, const std::vector<Resolver::Calls>& lets,
                 const std::vector<Resolver::Calls>& functions, Resolver& resolver) {
  // Lets first, then functions.
  const std::uint32_t let_count = static_cast<std::uint32_t>(code.lets.size());
  const std::uint32_t count = let_count + static_cast<std::uint32_t>(code.functions.size());
  const auto calls_of = [&](std::uint32_t node) -> const Resolver::Calls& {
    static const Resolver::Calls kNone;
    if (node < let_count) return node < lets.size() ? lets[node] : kNone;
    return node - let_count < functions.size() ? functions[node - let_count] : kNone;
  };
  const auto name_of = [&](std::uint32_t node) -> const std::string& {
    return node < let_count ? code.lets[node].name : code.functions[node - let_count].name;
  };
  const auto span_of = [&](std::uint32_t node) {
    return node < let_count ? code.lets[node].span : code.functions[node - let_count].span;
  };
  enum class State : std::uint8_t { New, Open, Done };
  std::vector<State> state(count, State::New);
  std::vector<std::uint32_t> depth(count, 0);
  struct Visit {
    std::uint32_t node = 0;
    std::size_t next = 0;
  };
  for (std::uint32_t root = 0; root < count; ++root) {
    if (state[root] != State::New) continue;
    std::vector<Visit> path = {{root, 0}};
    state[root] = State::Open;
    while (!path.empty()) {
      const std::uint32_t node = path.back().node;
      const Resolver::Calls& calls = calls_of(node);
      const std::size_t i = path.back().next++;
      if (i < calls.lets.size() + calls.functions.size()) {
        const std::uint32_t next =
            i < calls.lets.size() ? calls.lets[i] : let_count + calls.functions[i - calls.lets.size()];
        if (state[next] == State::New) {
          state[next] = State::Open;
          path.push_back({next, 0});
        } else if (state[next] == State::Open) {
          auto from = std::find_if(path.begin(), path.end(), [&](const Visit& visit) { return visit.node == next; });
          std::string message = fmt::format("`{}` needs itself", name_of(next));
          if (++from != path.end()) {
            message = fmt::format("`{}` needs `{}`", name_of(next), name_of(from->node));
            while (++from != path.end()) message += fmt::format(", which needs `{}`", name_of(from->node));
            message += fmt::format(", which needs `{}`", name_of(next));
          }
          const bool is_function = next >= let_count;
          message += is_function ? ": a function cannot call itself" : ": a value cannot be its own part";
          resolver.error("endless-call", span_of(next), message, "", {},
                         is_function ? "there is no recursion; `[e for i in list]`, `sum`, `min`, `max` repeat" : "");
          return;
        }
        continue;
      }
      std::uint32_t below = 0;
      for (std::uint32_t let : calls.lets) below = std::max(below, depth[let]);
      for (std::uint32_t function : calls.functions) below = std::max(below, depth[let_count + function]);
      depth[node] = below + calls.depth + 1;
      state[node] = State::Done;
      path.pop_back();
      if (depth[node] > kMaxTotalDepth) {
        resolver.error("nested-too-deep", span_of(node),
                       fmt::format("`{}` and the functions it calls are more than {} expressions deep", name_of(node),
                                   kMaxTotalDepth));
        return;
      }
    }
  }
}

}  // namespace stave
