#include "executor/prepare.h"

#include <string>

#include "executor/device.h"
#include "executor/ranks/ranks.h"
#include "executor/stage/config.h"

namespace stave {

// Which devices are here.
Result<void> place(const Program& program, const RunOptions& options, Plan& plan) {
  if (options.ranks == nullptr) return {};
  const std::uint32_t devices = program.table.devices();
  const std::uint32_t ranks = options.ranks->control.size();
  if (ranks != devices)
    return Failure{"the schedule has " + std::to_string(devices) + " devices, one a rank, but there " +
                   (ranks == 1 ? "is 1 rank" : "are " + std::to_string(ranks) + " ranks")};
  if (program.order.empty()) return Failure{"a program that was lowered unchecked runs in one process only"};
  for (std::uint32_t d = 0; d < devices; ++d) plan.model.here.push_back(options.ranks->has(DeviceId(d)));
  return {};
}

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
    if (plan.model.is_here(DeviceId(d)))
      buffers +=
          DeviceBuffers::bytes(program.slots[DeviceId(d)], payloads, Device::stash_bytes(plan, workload, DeviceId(d)));
  if (parameters + buffers > static_cast<double>(bound)) {
    const auto mib = [](double bytes) { return std::to_string(static_cast<std::uint64_t>(bytes / kMiB)) + " MiB"; };
    return Failure{"the run needs " + mib(parameters) + " for parameters and " + mib(buffers) +
                   " for activations and messages, more than the bound of " + mib(static_cast<double>(bound))};
  }
  return static_cast<std::uint64_t>(parameters + buffers);
}

}  // namespace stave
