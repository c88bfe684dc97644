// In a build without NCCL: there are no ranks of several GPUs, and who asks for them is told so.
#include <stdexcept>

#include "executor/cuda/communicators.h"

namespace stave {

namespace {
[[noreturn]] void fail() { throw std::runtime_error("this build has no NCCL"); }
}  // namespace

std::unique_ptr<CudaMemory> make_message_memory(cudaStream_t stream) {
  return std::make_unique<CudaMemory>(stream, false);
}

void Communicators::set_environment(bool, bool) {}
std::size_t Communicators::count(const Program&, const Groups&, bool) { return 0; }
std::vector<std::byte> Communicators::make_ids(std::size_t) { fail(); }
Communicators::Communicators(const Program& program, const Groups&, bool serial, DeviceId rank)
    : program_(program), serial_(serial), rank_(rank), first_group_(0) {
  fail();
}
Communicators::~Communicators() = default;
void Communicators::connect(const std::vector<std::byte>&, std::byte*, const std::function<cudaStream_t(EdgeId)>&,
                            const std::function<void(cudaStream_t)>&) {
  fail();
}
void Communicators::register_memory(std::span<std::byte>) { fail(); }
void Communicators::send(EdgeId, const std::byte*, std::size_t, cudaStream_t) { fail(); }
void Communicators::receive(EdgeId, std::byte*, std::size_t, cudaStream_t) { fail(); }
void Communicators::sum(std::size_t, const GradientView&, cudaStream_t) { fail(); }
std::string Communicators::error() { return ""; }
void Communicators::abort_all() {}

}  // namespace stave
