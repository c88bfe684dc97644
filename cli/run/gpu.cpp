#include "cli/run/gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace stave {

bool must_hand_on(const RunArguments& arguments) { return arguments.is_on_gpus() && gpu_maker == nullptr; }

Exit hand_on() {
  std::error_code error;
  const std::filesystem::path mine = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string other = (mine.parent_path() / "stave-gpu").string();
  std::vector<std::string> words = command_line();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(other.c_str(), pointers.data());
  return fail("--backend cuda: this build of stave has no runs on GPUs: it was made without CUDA");
}

Result<std::unique_ptr<Gpu>> make_gpu(const RunArguments& arguments, std::uint32_t devices, const Role& role) {
  const auto refuse = [](const std::string& what) { return Failure{"--backend cuda: " + what}; };
  if (arguments.sleeps()) return refuse("sleeps compute nothing: they are run by the CPU");
  if (arguments.has_own_stage() && !arguments.graph.empty())
    return refuse("--graph replays calls, and a stage library is told the step by each");
  if (arguments.has_own_stage() && arguments.verify)
    return refuse("--verify compares with a run on the CPU, and a stage library of GPUs has none");
  if (arguments.unchecked) return refuse("--unchecked is of cpu");
  if (arguments.verify && arguments.precision != "fp32")
    return refuse("--verify compares with a run in fp32: leave --precision out");
  if (arguments.clock == "virtual") return refuse("runs on GPUs keep the wall clock");
  GpuOptions options;
  options.is_nccl = role.transport == TransportKind::Nccl;
  options.is_rank = role.is_rank;
  options.is_serial = arguments.serial;
  options.is_graph = !arguments.graph.empty();
  options.is_bf16 = arguments.precision == "bf16";
  Result<std::unique_ptr<Gpu>> made = gpu_maker(devices, options);
  if (!made) return refuse(made.failure().message);
  return made;
}

}  // namespace stave
