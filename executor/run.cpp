#include "executor/run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>

#include "executor/checkpoint.h"
#include "executor/control/watchdog.h"
#include "executor/cpu/matmul.h"
#include "executor/device.h"
#include "executor/execution.h"
#include "executor/measure.h"
#include "executor/plan.h"
#include "executor/prepare.h"
#include "executor/ranks/ranks.h"
#include "executor/stage/config.h"
#include "executor/step_end.h"
#include "executor/team.h"
#include "executor/walk.h"

namespace stave {

namespace {

bool is_here(const RunOptions& options, DeviceId d) { return options.ranks == nullptr || options.ranks->has(d); }

// Which devices are here.
Result<void> place(const Program& program, const RunOptions& options, Plan& plan) {
  if (options.ranks == nullptr) return {};
  const std::uint32_t devices = program.table.devices();
  const std::uint32_t ranks = options.ranks->control.size();
  if (ranks != devices)
    return Failure{"the schedule has " + std::to_string(devices) + " devices, one a rank, but there are " +
                   std::to_string(ranks) + " ranks"};
  if (program.order.empty()) return Failure{"a program that was lowered unchecked runs in one process only"};
  for (std::uint32_t d = 0; d < devices; ++d) plan.model.here.push_back(options.ranks->has(DeviceId(d)));
  return {};
}

// What a first step is thought to take; a rank that does not get on is found out after twenty times that.
constexpr Ticks kFirstStepNs = 30'000'000'000;

// Everything of one run, and the two ways to walk it.
class Session {
 public:
  Session(const Program& program, const Plan& plan, Workload& workload, const RunOptions& options,
          std::vector<std::unique_ptr<Device>> devices)
      : program_(program),
        plan_(plan),
        workload_(workload),
        options_(options),
        devices_(std::move(devices)),
        remote_(options.ranks == nullptr ? nullptr
                                         : std::make_unique<Remote>(program, plan, workload, devices_, *options.ranks,
                                                                    options.plan_hash)),
        execution_(program, plan, options, workload, devices_, remote_.get()),
        walk_(execution_),
        rendezvous_(execution_),
        step_end_(plan, workload, options, execution_, devices_),
        measured_(program),
        team_(is_checked() ? walk_.threads() : program.table.devices(), [this] {
          execution_.wake();
          walk_.wake();
          rendezvous_.wake();
          if (options_.ranks != nullptr) options_.ranks->transport.cancel();
        }) {
    if (options.ranks == nullptr) return;
    watchdog_ = std::make_unique<Watchdog>(
        options.ranks->control, walk_.threads(),
        [this](std::uint32_t, std::uint64_t what) { return walk_.position(what); },
        [this](const std::string& text) {
          if (options_.on_warning) options_.on_warning(text);
        });
    walk_.watch_with(watchdog_.get());
  }

  Result<RunReport> run() {
    if (options_.resumes) {
      const Result<std::uint64_t> done = read_checkpoint(options_.checkpoints, options_.what, plan_.model, workload_);
      if (!done) return done.failure();
      if (done.value() >= options_.steps)
        return Failure{"the checkpoint in " + options_.checkpoints + " has done " + std::to_string(done.value()) +
                       " steps, and --steps is " + std::to_string(options_.steps)};
      report_.resumed_at = done.value();
    }
    Result<void> ended = team_.run([this](std::uint32_t thread) { work(thread); }, [this] { watch(); });
    if (!ended) return ended.failure();
    report_.declared = plan_.declared;
    if (rendezvous_.is_deadlocked()) {
      report_.deadlock = rendezvous_.deadlock();
    } else if (!report_.losses.empty()) {
      measured_.report(report_);
    }
    return std::move(report_);
  }

 private:
  bool is_checked() const { return !program_.order.empty(); }

  void watch() {
    if (team_.stopped()) return;
    if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed)) {
      report_.interrupted = true;
      team_.stop();
    } else if (options_.ranks != nullptr && options_.ranks->control.is_aborted()) {
      team_.fail(options_.ranks->control.cause());
    }
  }

  // Unchecked, the queue of a device takes its streams in.
  void work(std::uint32_t thread) {
    sharpen_sleep_of_thread();
    use_one_thread();
    const DeviceId d = is_checked() ? walk_.computes(thread) : DeviceId(thread);
    for (std::uint64_t step = report_.resumed_at; step < options_.steps; ++step) {
      if (d.valid()) devices_[d.value]->begin_step(step);
      if (!team_.meet([&] { begin(step); })) return;
      const bool walked = is_checked() ? walk_.run(team_, thread) : rendezvous_.walk(team_, d);
      if (!walked || !step_end_.run(team_, d)) return;
      if (!team_.meet([&] { finish(step); })) return;
    }
  }

  void begin(std::uint64_t step) {
    step_began_ = now_ns();
    walk_.begin_step(longest_);
    rendezvous_.begin_step();
    Ticks origin = step_began_;
    if (options_.ranks != nullptr) {
      Result<Ticks> common = common_origin(*options_.ranks);
      if (!common) return team_.fail(common.failure().message);
      origin = *common;
    }
    execution_.begin_step(step, origin);
  }

  void finish(std::uint64_t step) {
    StepReport report;
    report.step = step;
    report.tokens = workload_.tokens_per_step();
    report.loss = workload_.loss();
    if (options_.ranks != nullptr) {
      const Result<void> shared = share_step(*options_.ranks, program_, report.loss, execution_.timeline());
      if (!shared) return team_.fail(shared.failure().message);
    }
    report.seconds = static_cast<double>(now_ns() - step_began_) * 1e-9;
    report.makespan_ns = makespan(program_, execution_.timeline());
    longest_ = std::max(step == report_.resumed_at ? 0 : longest_, now_ns() - step_began_);
    report.bubble = bubble(program_, execution_.timeline());
    measured_.add(step, execution_.timeline());
    report_.losses.push_back(report.loss);
    report.gradient_norm = step_end_.gradient_norm();
    if (options_.on_step) options_.on_step(report);
    if (!std::isfinite(report.loss))
      return team_.fail("the loss of step " + std::to_string(step + 1) + " is not finite; try a lower learning rate");
    if (options_.checkpoint_every == 0) return;
    if ((step + 1) % options_.checkpoint_every != 0 && step + 1 != options_.steps) return;
    const Result<void> written =
        write_checkpoint(options_.checkpoints, step + 1, options_.what, plan_.model, workload_, options_.ranks);
    if (!written) team_.fail(written.failure().message);
  }

  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  const RunOptions& options_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Remote> remote_;
  Execution execution_;
  Walk walk_;
  Rendezvous rendezvous_;
  StepEnd step_end_;
  Measured measured_;
  Team team_;
  RunReport report_;
  Ticks step_began_ = 0;
  // Of the steps so far, by the wall clock; before the first nobody knows.
  Ticks longest_ = kFirstStepNs;
  // The last to come, and so the first to go: it looks into the walk.
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace

Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options) {
  Result<Plan> plan = make_plan(program, workload.computes());
  if (!plan) return plan.failure();
  if (Result<void> valid = check_options(program, options); !valid) return valid.failure();
  if (Result<void> clips = StepEnd::check(*plan, options); !clips) return clips.failure();
  if (Result<void> ranks = place(program, options, *plan); !ranks) return ranks.failure();
  if (Result<void> fits = workload.configure(plan->model); !fits) return fits.failure();
  const std::vector<std::size_t> payloads = payload_sizes(program, workload);
  Result<std::uint64_t> memory = check_memory(program, *plan, workload, payloads, options.memory_bound_bytes);
  if (!memory) return memory.failure();
  try {
    workload.create();
    std::vector<std::unique_ptr<Device>> devices;
    for (std::uint32_t d = 0; d < program.table.devices(); ++d)
      devices.push_back(is_here(options, DeviceId(d))
                            ? std::make_unique<Device>(program, *plan, workload, DeviceId(d), payloads)
                            : nullptr);
    Session session(program, *plan, workload, options, std::move(devices));
    Result<RunReport> report = session.run();
    if (report) report->memory_bytes = *memory;
    return report;
  } catch (const std::bad_alloc&) {
    return Failure{"not enough memory for the run: it needs " + std::to_string(*memory >> 20) + " MiB"};
  } catch (const std::exception& e) {
    return Failure{std::string("the run could not start: ") + e.what()};
  }
}

}  // namespace stave
