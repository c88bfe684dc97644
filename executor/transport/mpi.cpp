#include "executor/transport/mpi.h"

// The C++ bindings of old versions are not wanted.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/clock.h"

namespace stave {

namespace {

constexpr std::size_t kMostText = 4096;
// The communication thread looks this often at what is under way, and sleeps in between.
constexpr std::chrono::microseconds kPoll(30);
// A piece of a message; MPI counts in int.
constexpr std::size_t kMostPiece = std::size_t{1} << 30;

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(bool rendezvous) : rendezvous_(rendezvous), thread_([this] { communicate(); }) {}

  ~MpiTransport() override { close(); }

  std::string send(Channel channel, const MessageHeader& header, std::span<const std::byte> data) override {
    MessageHeader copy = header;
    // What is sent is only read.
    Job jobs[2] = {{true, channel, &copy, sizeof(copy)},
                   {true, channel, const_cast<std::byte*>(data.data()), data.size()}};
    return run(std::span(jobs, data.empty() ? 1 : 2));
  }

  std::string receive(Channel channel, MessageHeader& header, std::span<std::byte> data) override {
    Job first[1] = {{false, channel, &header, sizeof(header)}};
    std::string error = run(first);
    if (!error.empty() || data.empty() || header.bytes != data.size()) return error;
    Job second[1] = {{false, channel, data.data(), data.size()}};
    return run(second);
  }

  void cancel() override {
    const std::scoped_lock lock(mutex_);
    canceled_ = true;
    asked_.notify_all();
    done_.notify_all();
  }

  void close() override {
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
      asked_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  // One transfer as its caller waits for it, in pieces of at most kMostPiece.
  struct Job {
    bool sends = false;
    Channel channel;
    void* data = nullptr;
    std::size_t size = 0;
    std::size_t left = 0;
    int error = MPI_SUCCESS;
  };

  struct Piece {
    Job* job = nullptr;
    std::byte* data = nullptr;
    int size = 0;
  };

  std::string run(std::span<Job> jobs) {
    std::unique_lock lock(mutex_);
    if (canceled_ || closing_) return "canceled";
    for (Job& job : jobs) {
      job.left = (job.size + kMostPiece - 1) / kMostPiece;
      for (std::size_t at = 0; at < job.size; at += kMostPiece)
        queue_.push_back({&job, static_cast<std::byte*>(job.data) + at,
                          static_cast<int>(std::min(kMostPiece, job.size - at))});
    }
    asked_.notify_one();
    const auto is_done = [&] { return std::ranges::all_of(jobs, [](const Job& job) { return job.left == 0; }); };
    done_.wait(lock, [&] { return is_done() || canceled_; });
    if (!is_done()) {
      // The communication thread must not touch them any more.
      for (Job& job : jobs) forget(job);
      return "canceled";
    }
    for (const Job& job : jobs)
      if (job.error != MPI_SUCCESS) return text(job.error);
    return "";
  }

  void forget(Job& job) {
    std::erase_if(queue_, [&](const Piece& piece) { return piece.job == &job; });
    for (Piece& piece : under_way_)
      if (piece.job == &job) piece.job = nullptr;
  }

  static std::string text(int error) {
    char buffer[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(error, buffer, &length);
    return "mpi: " + std::string(buffer, static_cast<std::size_t>(length));
  }

  void communicate() {
    sharpen_sleep_of_thread();
    std::vector<Piece> posting;
    std::vector<int> ended;
    std::unique_lock lock(mutex_);
    while (true) {
      if (requests_.empty()) asked_.wait(lock, [&] { return !queue_.empty() || closing_ || canceled_; });
      // After a failure what is under way never ends: the process does.
      if (canceled_ || (closing_ && queue_.empty() && requests_.empty())) return;
      posting.swap(queue_);
      for (const Piece& piece : posting) post(piece);
      posting.clear();
      ended.resize(requests_.size());
      int count = 0;
      lock.unlock();
      const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, ended.data(),
                                     MPI_STATUSES_IGNORE);
      if (count == 0 || count == MPI_UNDEFINED) std::this_thread::sleep_for(kPoll);
      lock.lock();
      if (count > 0 && count != MPI_UNDEFINED) note_ended(std::span(ended.data(), static_cast<std::size_t>(count)), error);
    }
  }

  void post(const Piece& piece) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int peer = static_cast<int>(piece.job->channel.peer);
    const int tag = static_cast<int>(piece.job->channel.number);
    int error = MPI_SUCCESS;
    if (!piece.job->sends)
      error = MPI_Irecv(piece.data, piece.size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
    else if (rendezvous_)
      error = MPI_Issend(piece.data, piece.size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
    else
      error = MPI_Isend(piece.data, piece.size, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request);
    if (error != MPI_SUCCESS) {
      piece.job->error = error;
      piece.job->left = 0;
      done_.notify_all();
      return;
    }
    requests_.push_back(request);
    under_way_.push_back(piece);
  }

  void note_ended(std::span<const int> ended, int error) {
    for (int i : ended) {
      Job* job = under_way_[static_cast<std::size_t>(i)].job;
      under_way_[static_cast<std::size_t>(i)].data = nullptr;
      if (job == nullptr) continue;
      if (error != MPI_SUCCESS) job->error = error;
      if (job->left > 0) --job->left;
    }
    std::erase_if(under_way_, [](const Piece& piece) { return piece.data == nullptr; });
    std::erase(requests_, MPI_REQUEST_NULL);
    done_.notify_all();
  }

  const bool rendezvous_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable done_;
  std::vector<Piece> queue_;
  // What is under way, and its requests, in the same order; the requests are the communication thread's alone.
  std::vector<Piece> under_way_;
  std::vector<MPI_Request> requests_;
  bool canceled_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MpiWorld>> MpiWorld::start() {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return Failure{"MPI cannot be started; is this run under mpirun or srun?"};
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return Failure{"this MPI library cannot be called from a thread of its own"};
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::unique_ptr<MpiWorld>(new MpiWorld(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(size)));
}

MpiWorld::~MpiWorld() {
  if (!is_abandoned_) MPI_Finalize();
}

std::string MpiWorld::broadcast(std::string text) const {
  text.resize(kMostText, '\0');
  MPI_Bcast(text.data(), static_cast<int>(kMostText), MPI_BYTE, 0, MPI_COMM_WORLD);
  return text.c_str();
}

std::unique_ptr<Transport> MpiWorld::connect(bool rendezvous) const { return std::make_unique<MpiTransport>(rendezvous); }

}  // namespace stave
