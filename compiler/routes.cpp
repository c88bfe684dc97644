#include "compiler/routes.h"

#include <fmt/format.h>

#include "compiler/evaluate.h"

namespace stave {

Routes find_routes(Evaluator& evaluator) {
  Routes routes;
  const std::optional<RouteCode>& code = evaluator.code().route;
  if (!code) return routes;
  routes.stages = evaluator.stages();
  routes.microbatches = evaluator.count(SettingKind::Microbatches);
  const std::size_t size = std::size_t(routes.stages) * routes.microbatches;
  const Span span = evaluator.code().spans[code->stages];
  if (size > kMaxOps)
    evaluator.fail("too-many", span, fmt::format("{} stages of {} microbatches: there are at most {} ops",
                                                 routes.stages, routes.microbatches, kMaxOps));
  routes.before.assign(size, Routes::kNone);
  routes.after.assign(size, Routes::kNone);
  routes.visits.assign(size, false);
  std::vector<bool> visited(routes.stages, false);
  evaluator.add_budget(size);
  evaluator.enter_loop(code->slot);
  for (std::uint32_t m = 0; m < routes.microbatches; ++m) {
    const Arena::Mark mark = evaluator.arena().mark();
    evaluator.set(code->slot, Datum::whole(m));
    const Datum list = evaluator.list(code->stages);
    if (list.length() == 0) evaluator.fail("route", span, "a route without a stage");
    std::uint32_t last = Routes::kNone;
    for (std::int64_t i = 0; i < list.length(); ++i) {
      evaluator.step(span);
      const Datum each = list[i];
      if (!each.is_whole() || each.integer() < 0 || each.integer() >= routes.stages)
        evaluator.fail("index-outside", span,
                       fmt::format("there is no stage {}: they run from 0 to {}", each.text(), routes.stages - 1),
                       list.text());
      const std::uint32_t stage = static_cast<std::uint32_t>(each.integer());
      const std::size_t at = std::size_t(stage) * routes.microbatches + m;
      if (routes.visits[at])
        evaluator.fail("route", span, fmt::format("the route visits stage {} twice", stage), list.text());
      routes.visits[at] = true;
      visited[stage] = true;
      routes.before[at] = last;
      if (last != Routes::kNone) routes.after[std::size_t(last) * routes.microbatches + m] = stage;
      last = stage;
    }
    evaluator.arena().release(mark);
  }
  evaluator.leave_loop();
  for (std::uint32_t s = 0; s < routes.stages; ++s)
    if (!visited[s]) evaluator.fail("route", span, fmt::format("no microbatch visits stage {}", s));
  return routes;
}

}  // namespace stave
