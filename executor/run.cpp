#include "executor/run.h"

#include <cmath>
#include <memory>
#include <new>

#include "executor/cpu/matmul.h"
#include "executor/device.h"
#include "executor/execution.h"
#include "executor/measure.h"
#include "executor/plan.h"
#include "executor/reduction.h"
#include "executor/stage/config.h"
#include "executor/team.h"
#include "executor/walk.h"

namespace stave {

namespace {

Result<void> check_options(const Program& program, const RunOptions& options) {
  if (options.steps < kStepsBounds.least || options.steps > kStepsBounds.most)
    return Failure{"steps is " + std::to_string(options.steps) + ", but must lie between " +
                   std::to_string(kStepsBounds.least) + " and " + std::to_string(kStepsBounds.most)};
  if (!options.cost_ns.empty() && options.cost_ns.size() != program.nodes())
    return Failure{"the prices do not fit the program"};
  if (!options.setup_ns.empty() && options.setup_ns.size() != program.table.size())
    return Failure{"the prices of the changes between ops do not fit the program"};
  Ticks sum = 0;
  for (const std::vector<Ticks>* prices : {&options.cost_ns, &options.setup_ns})
    for (Ticks cost : *prices) {
      if (cost < 0 || cost > kMaxTicks - sum)
        return Failure{"a price is negative, or all together are too long to keep"};
      sum += cost;
    }
  return {};
}

std::vector<std::size_t> payload_sizes(const Program& program, const Workload& workload) {
  std::vector<std::size_t> result;
  for (const std::string& payload : program.payloads) result.push_back(workload.payload_bytes(payload));
  return result;
}

Result<std::uint64_t> check_memory(const Program& program, const Plan& plan, const Workload& workload,
                                   const std::vector<std::size_t>& payloads, std::uint64_t bound) {
  constexpr double kMiB = 1024 * 1024;
  const double parameters = static_cast<double>(workload.parameter_bytes());
  double buffers = 0;
  for (std::uint32_t d = 0; d < program.table.devices(); ++d)
    buffers +=
        DeviceBuffers::bytes(program.slots[DeviceId(d)], payloads, Device::stash_bytes(plan, workload, DeviceId(d)));
  if (parameters + buffers > static_cast<double>(bound)) {
    const auto mib = [](double bytes) { return std::to_string(static_cast<std::uint64_t>(bytes / kMiB)) + " MiB"; };
    return Failure{"the run needs " + mib(parameters) + " for parameters and " + mib(buffers) +
                   " for activations and messages, more than the bound of " + mib(static_cast<double>(bound))};
  }
  return static_cast<std::uint64_t>(parameters + buffers);
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
        execution_(program, plan, options, workload, devices_),
        walk_(execution_),
        rendezvous_(execution_),
        measured_(program),
        team_(is_checked() ? walk_.lanes() : program.table.devices(), [this] {
          execution_.wake();
          walk_.wake();
          rendezvous_.wake();
        }) {
    for (std::uint32_t s = 0; s < plan.model.stages; ++s)
      reduces_at_end_ = reduces_at_end_ || (plan.model.devices[StageId(s)].size() > 1 && plan.reduces_itself[s] == 0);
  }

  Result<RunReport> run() {
    Result<void> ended = team_.run([this](std::uint32_t lane) { work(lane); }, options_.interrupt);
    if (!ended) return ended.failure();
    report_.interrupted = team_.interrupted();
    report_.declared = plan_.declared;
    if (rendezvous_.is_deadlocked()) {
      report_.deadlock = rendezvous_.deadlock();
    } else if (!report_.losses.empty()) {
      const Measured::Typical typical = measured_.typical();
      report_.timeline = *typical.timeline;
      report_.timeline_step = typical.step;
      report_.makespan_ns = makespan(program_, report_.timeline);
      report_.bubble = bubble(program_, report_.timeline);
      report_.medians = measured_.medians();
    }
    return std::move(report_);
  }

 private:
  bool is_checked() const { return !program_.order.empty(); }

  // Unchecked, the queue of a device takes its streams in.
  void work(std::uint32_t lane) {
    sharpen_sleep_of_thread();
    use_one_thread();
    const bool computes = lane < program_.table.devices();
    for (std::uint64_t step = 0; step < options_.steps; ++step) {
      if (computes) devices_[lane]->begin_step(step);
      if (!team_.meet([&] { begin(step); })) return;
      const bool walked = is_checked() ? walk_.run(team_, lane) : rendezvous_.walk(team_, DeviceId(lane));
      if (!walked || !reduce(lane)) return;
      if (computes) devices_[lane]->end_step();
      if (!team_.meet([&] { finish(step); })) return;
    }
  }

  // Sums the gradients of the stages that have several devices and no reduction in the table: each on the first of its
  // devices, once all have ended their ops and before any goes on.
  bool reduce(std::uint32_t lane) {
    if (!reduces_at_end_) return true;
    const auto nothing = [] {};
    if (!team_.meet(nothing)) return false;
    for (std::uint32_t s = 0; s < plan_.model.stages; ++s) {
      const std::vector<DeviceId>& devices = plan_.model.devices[StageId(s)];
      if (devices.size() < 2 || devices.front() != DeviceId(lane) || plan_.reduces_itself[s] != 0) continue;
      reduce_gradients(replicas_of(plan_.model, workload_, StageId(s)));
    }
    return team_.meet(nothing);
  }

  void begin(std::uint64_t step) {
    step_began_ = now_ns();
    walk_.begin_step();
    rendezvous_.begin_step();
    execution_.begin_step(step);
  }

  void finish(std::uint64_t step) {
    StepReport report;
    report.step = step;
    report.tokens = workload_.tokens_per_step();
    report.loss = workload_.loss();
    report.seconds = static_cast<double>(now_ns() - step_began_) * 1e-9;
    report.makespan_ns = makespan(program_, execution_.timeline());
    report.bubble = bubble(program_, execution_.timeline());
    measured_.add(step, execution_.timeline());
    report_.losses.push_back(report.loss);
    if (options_.on_step) options_.on_step(report);
    if (!std::isfinite(report.loss))
      team_.fail("the loss of step " + std::to_string(step + 1) + " is not finite; try a lower learning rate");
  }

  const Program& program_;
  const Plan& plan_;
  Workload& workload_;
  const RunOptions& options_;
  std::vector<std::unique_ptr<Device>> devices_;
  Execution execution_;
  Walk walk_;
  Rendezvous rendezvous_;
  Measured measured_;
  Team team_;
  RunReport report_;
  Ticks step_began_ = 0;
  bool reduces_at_end_ = false;
};

}  // namespace

Result<RunReport> run(const Program& program, Workload& workload, const RunOptions& options) {
  Result<Plan> plan = make_plan(program, workload.computes());
  if (!plan) return plan.failure();
  if (Result<void> valid = check_options(program, options); !valid) return valid.failure();
  if (Result<void> fits = workload.configure(plan->model); !fits) return fits.failure();
  const std::vector<std::size_t> payloads = payload_sizes(program, workload);
  Result<std::uint64_t> memory = check_memory(program, *plan, workload, payloads, options.memory_bound_bytes);
  if (!memory) return memory.failure();
  try {
    workload.create();
    std::vector<std::unique_ptr<Device>> devices;
    for (std::uint32_t d = 0; d < program.table.devices(); ++d)
      devices.push_back(std::make_unique<Device>(program, *plan, workload, DeviceId(d), payloads));
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
