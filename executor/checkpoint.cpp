#include "executor/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <vector>

#include "core/program_file.h"
#include "executor/first_difference.h"
#include "executor/ranks/ranks.h"
#include "executor/stage/host_view.h"

namespace stave {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "stave-checkpoint 1\n";
constexpr std::uint64_t kStageMagic = 0x7374'6167'6530'3031;
constexpr std::size_t kKept = 2;
constexpr std::string_view kPrefix = "step-";

struct StageHeader {
  std::uint64_t magic = kStageMagic;
  std::uint64_t stage = 0;
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};

std::string name_of(std::uint64_t steps) {
  char text[32];
  std::snprintf(text, sizeof(text), "step-%08llu", static_cast<unsigned long long>(steps));
  return text;
}

// The steps of a checkpoint's folder; nothing of other names.
std::optional<std::uint64_t> steps_of(const fs::path& path) {
  const std::string name = path.filename().string();
  std::uint64_t steps = 0;
  if (name.rfind(kPrefix, 0) != 0) return {};
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), steps);
  if (error != std::errc() || end != name.data() + name.size() || name != name_of(steps)) return {};
  return steps;
}

std::vector<std::uint64_t> all_steps(const fs::path& folder) {
  std::vector<std::uint64_t> result;
  std::error_code ignored;
  for (const auto& each : fs::directory_iterator(folder, ignored))
    if (const std::optional<std::uint64_t> steps = steps_of(each.path())) result.push_back(*steps);
  std::ranges::sort(result);
  return result;
}

bool is_checkpoint(const fs::path& path) {
  std::ifstream in(path / "manifest", std::ios::binary);
  std::string begin(kManifest.size(), '\0');
  return in.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kManifest;
}

Failure failed(const fs::path& path, const std::string& what) {
  return Failure{"checkpoint " + path.string() + ": " + what};
}

// Whole and on the disk, or a failure.
Result<void> write_file(const fs::path& path, const std::vector<std::span<const std::byte>>& pieces) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path, std::strerror(errno));
  std::string error;
  for (std::span<const std::byte> piece : pieces) {
    while (!piece.empty() && error.empty()) {
      const ssize_t count = ::write(fd, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) error = std::strerror(errno);
      else piece = piece.subspan(static_cast<std::size_t>(count));
    }
  }
  if (error.empty() && ::fsync(fd) != 0) error = std::strerror(errno);
  if (::close(fd) != 0 && error.empty()) error = std::strerror(errno);
  return error.empty() ? Result<void>() : failed(path, error);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::uint64_t hash(const std::vector<std::span<std::byte>>& state) {
  std::uint64_t result = 0;
  for (std::span<std::byte> each : state) {
    const std::uint64_t mine = hash_of({reinterpret_cast<const char*>(each.data()), each.size()});
    result = hash_of({reinterpret_cast<const char*>(&mine), sizeof(mine)}) + result * 31;
  }
  return result;
}

StageHeader header_of(std::uint32_t s, std::uint64_t steps, const std::vector<std::span<std::byte>>& state) {
  StageHeader header;
  header.stage = s;
  header.steps = steps;
  for (std::span<std::byte> each : state) header.bytes += each.size();
  header.hash = hash(state);
  return header;
}

Result<void> write_stages(const fs::path& part, std::uint64_t steps, const Partition& model, Workload& workload) {
  std::error_code error;
  fs::create_directories(part, error);
  if (error) return failed(part, error.message());
  for (std::uint32_t s = 0; s < model.stages; ++s) {
    const std::vector<DeviceId>& devices = model.devices[StageId(s)];
    // Replicas are alike.
    if (devices.empty() || !model.is_here(devices.front())) continue;
    const HostView state(workload, workload.stage(StageId(s))->state());
    const StageHeader header = header_of(s, steps, state.pieces());
    std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(&header, 1))};
    pieces.insert(pieces.end(), state.pieces().begin(), state.pieces().end());
    if (Result<void> written = write_file(part / ("stage-" + std::to_string(s)), pieces); !written) return written;
  }
  return {};
}

Result<void> finish(const fs::path& part, const fs::path& whole, const std::string& what) {
  if (Result<void> written = write_file(part / "manifest", {bytes_of(kManifest), bytes_of(what)}); !written)
    return written;
  std::error_code error;
  fs::rename(part, whole, error);
  if (error) return failed(whole, error.message());
  std::vector<fs::path> all;
  for (std::uint64_t steps : all_steps(whole.parent_path()))
    if (is_checkpoint(whole.parent_path() / name_of(steps))) all.push_back(whole.parent_path() / name_of(steps));
  for (std::size_t i = 0; i + kKept < all.size(); ++i) fs::remove_all(all[i], error);
  return {};
}

// What one rank failed of all fail of.
Result<void> agree(const Ranks* ranks, const Result<void>& mine) {
  if (ranks == nullptr) return mine;
  Result<std::vector<std::string>> all = ranks->control.gather(mine ? "" : mine.failure().message);
  if (!all) return all.failure();
  for (std::uint32_t r = 0; r < all->size(); ++r)
    if (!(*all)[r].empty()) return Failure{"rank " + std::to_string(r) + ": " + (*all)[r]};
  return {};
}

Result<void> read_stage(const fs::path& path, std::uint32_t s, std::uint64_t steps, const Workload& workload,
                        Stage& stage) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed(path, std::strerror(errno));
  StageHeader header;
  in.read(reinterpret_cast<char*>(&header), sizeof(header));
  const HostView state(workload, stage.state());
  const StageHeader due = header_of(s, steps, state.pieces());
  if (!in || header.magic != kStageMagic) return failed(path, "this is no state of a stage, or it is cut short");
  if (header.stage != s || header.steps != steps || header.bytes != due.bytes)
    return failed(path, "it is the state of stage " + std::to_string(header.stage) + " after step " +
                            std::to_string(header.steps) + ", " + std::to_string(header.bytes) + " bytes; due are " +
                            std::to_string(due.bytes) + " of stage " + std::to_string(s) + " after step " +
                            std::to_string(steps));
  for (std::span<std::byte> each : state.pieces())
    in.read(reinterpret_cast<char*>(each.data()), static_cast<std::streamsize>(each.size()));
  if (!in) return failed(path, "it is cut short");
  if (hash(state.pieces()) != header.hash) return failed(path, "its data has changed since it was written");
  state.put_back();
  return {};
}

}  // namespace

std::uint64_t last_checkpoint(const std::string& folder) {
  const std::vector<std::uint64_t> all = all_steps(folder);
  return all.empty() ? 0 : all.back();
}

CheckpointFolder::~CheckpointFolder() {
  if (fd_ >= 0) ::close(fd_);
}

Result<CheckpointFolder> prepare_checkpoints(const std::string& folder, bool resumes) {
  if (const std::uint64_t last = last_checkpoint(folder); last != 0 && !resumes)
    return Failure{"there are checkpoints in " + folder + ", up to step " + std::to_string(last) +
                   "; go on from them with --resume, or name another folder"};
  if (resumes && last_checkpoint(folder) == 0) return Failure{"there is no checkpoint in " + folder};
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return failed(folder, error.message());
  const fs::path trial = fs::path(folder) / (".trial-" + std::to_string(::getpid()));
  if (Result<void> written = write_file(trial, {}); !written) return written.failure();
  fs::remove(trial, error);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CheckpointFolder result(fd);
  // Not every file system of a network has locks; there two runs are not told apart.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Failure{"another run keeps its checkpoints in " + folder + " at this moment"};
  return result;
}

Result<void> write_checkpoint(const std::string& folder, std::uint64_t steps, const std::string& what,
                              const Partition& model, Workload& workload, const Ranks* ranks) {
  const fs::path whole = fs::path(folder) / name_of(steps);
  const fs::path part = fs::path(folder) / ("." + name_of(steps) + ".part");
  std::error_code ignored;
  if (ranks == nullptr) fs::remove_all(part, ignored);
  const Result<void> written = agree(ranks, write_stages(part, steps, model, workload));
  const bool is_first = ranks == nullptr || ranks->rank() == 0;
  if (!written) {
    if (is_first) fs::remove_all(part, ignored);
    return written;
  }
  return agree(ranks, is_first ? finish(part, whole, what) : Result<void>());
}

Result<std::uint64_t> read_checkpoint(const std::string& folder, const std::string& what, const Partition& model,
                                      Workload& workload) {
  const std::vector<std::uint64_t> all = all_steps(folder);
  if (all.empty()) return Failure{"there is no checkpoint in " + folder};
  const fs::path path = fs::path(folder) / name_of(all.back());
  std::ifstream in(path / "manifest", std::ios::binary);
  if (!in) return failed(path / "manifest", std::strerror(errno));
  const std::string manifest{std::istreambuf_iterator<char>(in), {}};
  if (manifest.rfind(kManifest, 0) != 0) return failed(path / "manifest", "this is no checkpoint, or of another version");
  const std::string there = manifest.substr(kManifest.size());
  if (there != what) return failed(path, "it is of another run: " + first_difference(there, what, "this run"));
  for (std::uint32_t s = 0; s < model.stages; ++s)
    for (std::uint32_t r = 0; r < model.devices[StageId(s)].size(); ++r) {
      if (!model.is_here(model.devices[StageId(s)][r])) continue;
      const Result<void> read = read_stage(path / ("stage-" + std::to_string(s)), s, all.back(), workload,
                                           *workload.stage(StageId(s), r));
      if (!read) return read.failure();
    }
  return all.back();
}

}  // namespace stave
