#include "nccl_world.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>

namespace stave::fake {

namespace {

constexpr int kMostRanks = 64;
constexpr std::size_t kLeastRing = std::size_t{1} << 14;

// Before every message.
struct Title {
  std::uint64_t bytes = 0;
  std::uint64_t posted_ns = 0;
};
constexpr std::size_t kTitleBytes = sizeof(Title);

std::size_t room() {
  static const char* const text = std::getenv("FAKE_NCCL_BUFFER");
  static const std::size_t bytes = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return bytes;
}

// Within one process all who join see the memory at one address.
std::mutex all_mutex;
std::map<std::string, std::weak_ptr<World>>& all() {
  static auto* const made = new std::map<std::string, std::weak_ptr<World>>;
  return *made;
}

std::string path_of(const std::string& id) {
  std::string path = "/stave-fake-nccl-";
  for (std::size_t i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(i < id.size() ? id[i] : 0);
    path += "0123456789abcdef"[byte >> 4];
    path += "0123456789abcdef"[byte & 15];
  }
  return path;
}

}  // namespace

// Zeros are how it begins, so that nobody has to make it before others use it.
struct World::Head {
  std::atomic<std::uint32_t> changes;
  std::atomic<std::uint32_t> waiters;
  std::atomic<int> ranks;
  std::atomic<int> count;
  std::atomic<std::uint8_t> joined[kMostRanks];
};

// Bytes of the messages of one rank to another, each behind its title.
struct World::Channel {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  // When the last one matched ends.
  std::atomic<std::uint64_t> ends_ns;
};

std::shared_ptr<World> World::open(const std::string& id, int ranks) {
  if (ranks < 1 || ranks > kMostRanks) return nullptr;
  const std::scoped_lock lock(all_mutex);
  std::weak_ptr<World>& known = all()[id];
  if (std::shared_ptr<World> world = known.lock()) return world->ranks_ == ranks ? world : nullptr;
  std::shared_ptr<World> world(new World);
  world->path_ = path_of(id);
  world->ranks_ = ranks;
  // A message that is held at once has its title before it: of the smallest, four times its data.
  world->capacity_ = std::max(kLeastRing, 4 * room() / 64 * 64);
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t channels = n * n * (sizeof(Channel) + world->capacity_);
  world->size_ = (sizeof(Head) + 63) / 64 * 64 + n * sizeof(Part) + channels;
  const int fd = ::shm_open(world->path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  struct stat found = {};
  const bool is_short = ::fstat(fd, &found) == 0 && static_cast<std::size_t>(found.st_size) < world->size_;
  if (is_short && ::ftruncate(fd, static_cast<off_t>(world->size_)) != 0) {
    ::close(fd);
    return nullptr;
  }
  void* const memory = ::mmap(nullptr, world->size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return nullptr;
  world->memory_ = static_cast<std::byte*>(memory);
  world->head_ = reinterpret_cast<Head*>(memory);
  int others = 0;
  if (!world->head_->ranks.compare_exchange_strong(others, ranks) && others != ranks) return nullptr;
  known = world;
  return world;
}

World::~World() {
  if (head_ != nullptr && !is_complete()) ::shm_unlink(path_.c_str());
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

bool World::join(int rank) {
  if (rank < 0 || rank >= ranks_ || head_->joined[rank].exchange(1) != 0) return false;
  if (head_->count.fetch_add(1) + 1 == ranks_) ::shm_unlink(path_.c_str());
  notify();
  return true;
}

bool World::is_complete() const { return head_->count.load() == ranks_; }

std::uint32_t World::ticket() const { return head_->changes.load(); }

void World::wait(std::uint32_t ticket) {
  const timespec most{0, 20'000'000};
  ++head_->waiters;
  ::syscall(SYS_futex, &head_->changes, FUTEX_WAIT, ticket, &most, nullptr, 0);
  --head_->waiters;
}

void World::notify() {
  ++head_->changes;
  if (head_->waiters.load() != 0) ::syscall(SYS_futex, &head_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

World::Part& World::part(int rank) {
  std::byte* const first = memory_ + (sizeof(Head) + 63) / 64 * 64;
  return reinterpret_cast<Part*>(first)[rank];
}

World::Channel& World::channel(int from, int to) {
  std::byte* const first = reinterpret_cast<std::byte*>(&part(ranks_));
  const auto number = static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to);
  return *reinterpret_cast<Channel*>(first + number * (sizeof(Channel) + capacity_));
}

std::byte* World::ring(Channel& channel) { return reinterpret_cast<std::byte*>(&channel) + sizeof(Channel); }

Step World::send(int from, int to, const std::byte* data, std::size_t bytes, Moved& moved) {
  Channel& mine = channel(from, to);
  const std::uint64_t read = mine.read.load(std::memory_order_acquire);
  std::uint64_t written = mine.written.load(std::memory_order_relaxed);
  // Titles begin on their own boundary.
  const std::size_t padded = (bytes + kTitleBytes - 1) / kTitleBytes * kTitleBytes;
  bool changed = false;
  bool is_held = false;
  if (!moved.began) {
    if (written - read + kTitleBytes > capacity_) return Step::Nothing;
    const Title title{bytes, moved.time_ns};
    std::memcpy(ring(mine) + written % capacity_, &title, kTitleBytes);
    moved.began = true;
    moved.end = written + kTitleBytes + padded;
    is_held = room() != 0 && written - read + bytes <= room();
    written += kTitleBytes;
    changed = true;
  }
  while (moved.bytes < padded) {
    const std::size_t at = written % capacity_;
    const std::size_t most = std::min({padded - moved.bytes, capacity_ - (written - read), capacity_ - at});
    if (most == 0) break;
    if (moved.bytes < bytes) std::memcpy(ring(mine) + at, data + moved.bytes, std::min(most, bytes - moved.bytes));
    moved.bytes += most;
    written += most;
    changed = true;
  }
  mine.written.store(written, std::memory_order_release);
  if (changed) notify();
  if (read >= moved.end) moved.time_ns = mine.ends_ns.load();
  moved.ended = read >= moved.end || (is_held && moved.bytes == padded);
  return changed || moved.ended ? Step::Moved : Step::Nothing;
}

Step World::receive(int from, int to, std::byte* data, std::size_t bytes, Moved& moved, Matched matched) {
  Channel& mine = channel(from, to);
  const std::uint64_t written = mine.written.load(std::memory_order_acquire);
  std::uint64_t read = mine.read.load(std::memory_order_relaxed);
  const std::size_t padded = (bytes + kTitleBytes - 1) / kTitleBytes * kTitleBytes;
  bool changed = false;
  if (!moved.began) {
    if (written - read < kTitleBytes) return Step::Nothing;
    Title title;
    std::memcpy(&title, ring(mine) + read % capacity_, kTitleBytes);
    if (title.bytes != bytes) {
      moved.end = title.bytes;
      return Step::Mismatch;
    }
    moved.began = true;
    mine.ends_ns.store(matched(bytes, title.posted_ns));
    read += kTitleBytes;
    changed = true;
  }
  while (moved.bytes < padded) {
    const std::size_t at = read % capacity_;
    const std::size_t most = std::min({padded - moved.bytes, static_cast<std::size_t>(written - read), capacity_ - at});
    if (most == 0) break;
    if (moved.bytes < bytes) std::memcpy(data + moved.bytes, ring(mine) + at, std::min(most, bytes - moved.bytes));
    moved.bytes += most;
    read += most;
    changed = true;
  }
  moved.ended = moved.bytes == padded;
  mine.read.store(read, std::memory_order_release);
  if (changed) notify();
  return changed ? Step::Moved : Step::Nothing;
}

}  // namespace stave::fake
