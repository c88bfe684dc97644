#include "executor/ranks/join.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/program_file.h"
#include "executor/clock.h"
#include "executor/first_difference.h"
#ifdef STAVE_WITH_GLOO
#include "executor/transport/gloo.h"
#endif
#ifdef STAVE_WITH_MPI
#include "executor/transport/mpi.h"
#endif

namespace stave {

#ifndef STAVE_WITH_MPI
class MpiWorld {};
#endif

namespace {

// What fails on one rank often fails because of another, which is found out only a little later.
constexpr Ticks kCauseNs = 4'000'000'000;

// The texts themselves are told only if they differ.
Result<void> compare(Control& control, const std::string& what) {
  const std::uint64_t hash = hash_of(what);
  Result<std::vector<std::string>> all = control.gather(std::string(reinterpret_cast<const char*>(&hash), sizeof(hash)));
  if (!all) return all.failure();
  const auto other = std::ranges::find_if(*all, [&](const std::string& each) { return each != all->front(); });
  if (other == all->end()) return {};
  const auto r = static_cast<std::size_t>(other - all->begin());
  Result<std::vector<std::string>> texts = control.gather(what);
  if (!texts) return texts.failure();
  return Failure{"rank " + std::to_string(r) + " runs something else than rank 0: " +
                 first_difference((*texts)[r], texts->front(), "rank 0")};
}

// What all ranks fail of alike names its rank itself.
bool names_a_rank(const std::string& cause) {
  std::size_t rank = 0;
  int length = 0;
  return std::sscanf(cause.c_str(), "rank %zu: %n", &rank, &length) == 1 && length > 0;
}

#ifdef STAVE_WITH_MPI
// Where rank 0 listens is told by MPI itself.
Result<void> find_each_other(const MpiWorld& mpi, RankPlace& place) {
  place.rank = mpi.rank();
  place.size = mpi.size();
  if (!place.host.empty()) return {};
  std::string message;
  Result<Socket> listener = Failure{""};
  if (mpi.rank() == 0) {
    listener = listen_on(0);
    char host[256] = {};
    ::gethostname(host, sizeof(host) - 1);
    message = listener ? "+" + std::to_string(port_of(*listener)) + " " + std::to_string(now_ns()) + " " + host
                       : "-" + listener.failure().message;
  }
  message = mpi.broadcast(message);
  if (message.empty() || message[0] == '-') return Failure{message.substr(1)};
  const std::size_t first = message.find(' ');
  const std::size_t second = message.find(' ', first + 1);
  place.port = static_cast<std::uint16_t>(std::stoul(message.substr(1, first - 1)));
  place.token += message.substr(first + 1, second - first - 1);
  place.host = message.substr(second + 1);
  if (mpi.rank() == 0) place.listener = ::dup(listener->fd());
  return {};
}
#endif

}  // namespace

Result<std::unique_ptr<JoinedRank>> JoinedRank::join(TransportKind transport, const std::optional<RankPlace>& place,
                                                     bool rendezvous, const std::string& what) {
  if (const TransportInfo& info = info_of(transport); !info.is_built)
    return Failure{"this build of stave has no transport " + std::string(info.name) + ": it was made without " +
                   std::string(info.lacks)};
  // Gloo writes to a peer that is gone as to any other; that is to be told, and not to end this rank without a word.
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<JoinedRank> result(new JoinedRank);
  result->hash_ = hash_of(what);
  if (Result<void> done = result->come_together(transport, place, rendezvous, what); !done) {
    const std::string cause = result->control_ == nullptr ? done.failure().message : result->fail(done.failure().message);
    return Failure{cause};
  }
  return result;
}

Result<void> JoinedRank::come_together([[maybe_unused]] TransportKind transport, std::optional<RankPlace> place,
                                       [[maybe_unused]] bool rendezvous, const std::string& what) {
#ifdef STAVE_WITH_MPI
  // Under mpirun Gloo's ranks too find each other by MPI, unless the variables say where rank 0 listens.
  if (transport == TransportKind::Mpi || (place && place->launcher == "mpirun" && place->host.empty())) {
    Result<std::unique_ptr<MpiWorld>> mpi = MpiWorld::start();
    if (!mpi) return mpi.failure();
    mpi_ = std::move(*mpi);
    if (!place) place.emplace();
    if (Result<void> found = find_each_other(*mpi_, *place); !found) return found;
  }
#endif
  if (!place)
    return Failure{"this process is no rank: start it with --ranks N, mpirun, srun or torchrun, or set RANK, WORLD_SIZE, "
                   "MASTER_ADDR and MASTER_PORT"};
  if (place->host.empty())
    return Failure{"nothing says where rank 0 listens: set MASTER_ADDR and MASTER_PORT (" + place->launcher + " does not)"};
  Result<std::unique_ptr<Control>> control = Control::join(*place);
  if (!control) return control.failure();
  control_ = std::move(*control);
  if (Result<void> same = compare(*control_, what); !same) return same;
#ifdef STAVE_WITH_GLOO
  if (transport == TransportKind::Gloo) {
    Result<std::unique_ptr<Transport>> gloo = connect_gloo(*control_, control_->address());
    if (!gloo) return gloo.failure();
    transport_ = std::move(*gloo);
  }
#endif
#ifdef STAVE_WITH_MPI
  if (transport == TransportKind::Mpi) transport_ = mpi_->connect(rendezvous);
#endif
  // NCCL's communicators are the run's.
  STAVE_CHECK(transport_ != nullptr || transport == TransportKind::Nccl, "a transport of ranks that nothing connects");
  ranks_.reset(new Ranks{*control_, transport_.get(), place->local_rank});
  return {};
}

std::string JoinedRank::fail(const std::string& cause) {
  has_failed_ = true;
  const Ticks deadline = now_ns() + kCauseNs;
  // A transport's own words begin with its name.
  const bool is_of_another =
      cause.find("canceled") != std::string::npos || std::ranges::any_of(kTransports, [&](const TransportInfo& info) {
        return info.has_ranks && cause.find(std::string(info.name) + ":") != std::string::npos;
      });
  while (is_of_another && !control_->is_aborted() && now_ns() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!control_->is_aborted())
    control_->abort(names_a_rank(cause) ? cause : "rank " + std::to_string(control_->rank()) + ": " + cause);
  return control_->cause();
}

void JoinedRank::leave() {
  // All have ended their last message before any closes.
  const Result<std::vector<std::string>> all = control_->gather("");
  if (!all) has_failed_ = true;
  if (all && transport_ != nullptr) transport_->close();
  control_->leave();
}

JoinedRank::~JoinedRank() {
  if (transport_ != nullptr && has_failed_) transport_->cancel();
#ifdef STAVE_WITH_MPI
  if (mpi_ != nullptr && has_failed_) mpi_->abandon();
#endif
  // The others are told before this rank goes.
  control_.reset();
  transport_.reset();
}

}  // namespace stave
