#include "executor/steps.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "executor/checkpoint.h"
#include "executor/clock.h"
#include "executor/ranks/ranks.h"

namespace stave {

namespace {

// What a first step is thought to take; a rank that does not get on is found out after twenty times that.
constexpr Ticks kFirstStepNs = 30'000'000'000;

}  // namespace

Steps::Steps(const Program& program, const Plan& plan, Workload& workload, const RunOptions& options, Team& team)
    : program_(program),
      plan_(plan),
      workload_(workload),
      options_(options),
      team_(team),
      measured_(program),
      longest_(kFirstStepNs) {}

Result<void> Steps::resume() {
  if (!options_.resumes) return {};
  const Result<std::uint64_t> done = read_checkpoint(options_.checkpoints, options_.what, plan_.model, workload_);
  if (!done) return done.failure();
  if (options_.ranks != nullptr)
    if (Result<void> alike = agree_on_checkpoint(*options_.ranks, done.value()); !alike) return alike;
  if (done.value() >= options_.steps)
    return Failure{"the checkpoint in " + options_.checkpoints + " has done " + std::to_string(done.value()) +
                   " steps, and --steps is " + std::to_string(options_.steps)};
  report_.resumed_at = done.value();
  return {};
}

void Steps::watch() {
  if (team_.stopped()) return;
  if (const int signal = caught_signal(); signal != 0 && options_.checkpoint_every == 0) {
    report_.interrupted = true;
    report_.signal = signal;
    team_.stop();
  } else if (options_.ranks != nullptr && options_.ranks->control.is_aborted()) {
    team_.fail(options_.ranks->control.cause());
  }
}

void Steps::begin() {
  began_ = origin_ = now_ns();
  if (options_.ranks == nullptr) return;
  const Result<Ticks> common = common_origin(*options_.ranks);
  if (!common) return team_.fail(common.failure().message);
  origin_ = common.value();
}

void Steps::finish(std::uint64_t step, Timeline* timeline, Ticks makespan_ns, double gradient_norm) {
  StepReport report;
  report.step = step;
  report.tokens = workload_.tokens_per_step();
  report.loss = workload_.loss();
  report.makespan_ns = makespan_ns;
  report.gradient_norm = gradient_norm;
  int signal = caught_signal();
  if (options_.ranks != nullptr) {
    const Result<void> shared = share_step(*options_.ranks, program_, report.loss, signal, report.makespan_ns, timeline);
    if (!shared) return team_.fail(shared.failure().message);
  }
  report.seconds = static_cast<double>(now_ns() - began_) * 1e-9;
  longest_ = std::max(step == report_.resumed_at ? 0 : longest_, now_ns() - began_);
  if (timeline != nullptr) {
    report.makespan_ns = makespan(program_, *timeline);
    report.bubble = bubble(program_, *timeline);
    measured_.add(step, *timeline);
    has_times_ = true;
  }
  report_.losses.push_back(report.loss);
  if (options_.on_step) options_.on_step(report);
  if (!std::isfinite(report.loss))
    return team_.fail("the loss of step " + std::to_string(step + 1) + " is not finite; try a lower learning rate");
  if (options_.checkpoint_every == 0) return;
  const bool is_last = step + 1 == options_.steps;
  if ((step + 1) % options_.checkpoint_every != 0 && !is_last && signal == 0) return;
  const Result<void> written =
      write_checkpoint(options_.checkpoints, step + 1, options_.what, plan_.model, workload_, options_.ranks);
  if (!written) return team_.fail(written.failure().message);
  if (signal == 0 || is_last) return;
  ends_ = true;
  report_.interrupted = true;
  report_.signal = signal;
}

RunReport Steps::report() {
  report_.declared = plan_.declared;
  if (has_times_) measured_.report(report_);
  return std::move(report_);
}

}  // namespace stave
