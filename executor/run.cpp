#include "executor/run.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "executor/control/watchdog.h"
#include "executor/cpu/matmul.h"
#include "executor/device.h"
#include "executor/execution.h"
#include "executor/physical_memory.h"
#include "executor/plan.h"
#include "executor/prepare.h"
#include "executor/ranks/ranks.h"
#include "executor/stage/config.h"
#include "executor/step_end.h"
#include "executor/steps.h"
#include "executor/team.h"
#include "executor/walk.h"

namespace stave {

namespace {

bool is_here(const RunOptions& options, DeviceId d) { return options.ranks == nullptr || options.ranks->has(d); }

// Memory that is asked for and not there ends the process at its first use, without a word.
Result<void> check_host(std::uint64_t bytes, std::uint32_t processes) {
  const std::uint64_t usable = usable_memory();
  if (bytes <= usable / std::max(1u, processes)) return {};
  return Failure{"the run needs " + std::to_string(bytes >> 20) + " MiB of memory" +
                 (processes > 1 ? " in each of the " + std::to_string(processes) + " ranks of this host" : "") +
                 ", and this host has " + std::to_string(usable >> 20) + " MiB"};
}

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
        team_(is_checked() ? walk_.threads() : program.table.devices(), [this] {
          execution_.wake();
          walk_.wake();
          rendezvous_.wake();
          if (options_.ranks != nullptr) options_.ranks->transport->cancel();
        }),
        steps_(program, plan, workload, options, team_) {
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
    if (Result<void> resumed = steps_.resume(); !resumed) return resumed.failure();
    Result<void> ended = team_.run([this](std::uint32_t thread) { work(thread); }, [this] { steps_.watch(); });
    if (!ended) return ended.failure();
    RunReport report = steps_.report();
    if (rendezvous_.is_deadlocked()) report.deadlock = rendezvous_.deadlock();
    return report;
  }

 private:
  bool is_checked() const { return !program_.order.empty(); }

  // Unchecked, the queue of a device takes its streams in.
  void work(std::uint32_t thread) {
    sharpen_sleep_of_thread();
    use_one_thread();
    const DeviceId d = is_checked() ? walk_.computes(thread) : DeviceId(thread);
    for (std::uint64_t step = steps_.first(); steps_.is_due(step); ++step) {
      if (d.valid()) devices_[d.value]->begin_step(step);
      if (!team_.meet([&] { begin(step); })) return;
      const bool walked = is_checked() ? walk_.run(team_, thread) : rendezvous_.walk(team_, d);
      if (!walked || !step_end_.run(team_, d)) return;
      if (!team_.meet([&] { finish(step); })) return;
    }
  }

  void begin(std::uint64_t step) {
    walk_.begin_step(steps_.predicted_ns());
    rendezvous_.begin_step();
    steps_.begin();
    execution_.begin_step(step, steps_.origin());
  }

  void finish(std::uint64_t step) {
    steps_.finish(step, &execution_.timeline(), 0, step_end_.gradient_norm());
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
  Team team_;
  Steps steps_;
  // The last to come, and so the first to go: it looks into the walk.
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace

Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options) {
  Result<Plan> plan = make_plan(program, workload.computes());
  if (!plan) return plan.failure();
  if (Result<void> valid = check_options(program, options); !valid) return valid.failure();
  if (Result<void> ranks = place(program, options, *plan); !ranks) return ranks.failure();
  if (Result<void> fits = workload.configure(plan->model); !fits) return fits.failure();
  if (Result<void> ends = StepEnd::check(*plan, workload, options); !ends) return ends.failure();
  const std::vector<std::size_t> payloads = payload_sizes(program, workload);
  Result<std::uint64_t> memory = check_memory(program, *plan, workload, payloads, options.memory_bound_bytes);
  if (!memory) return memory.failure();
  if (Result<void> fits = check_host(*memory, options.processes_here); !fits) return fits.failure();
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
