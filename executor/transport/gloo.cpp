#include "executor/transport/gloo.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <unordered_set>
#include <utility>
#include <vector>

namespace stave {

namespace {

constexpr std::chrono::seconds kConnectTimeout(30);
// A wait that times out closes all connections of a Gloo context, so it cannot be renewed: waits are long, and ended by
// cancel() when the control plane finds that a rank is gone.
constexpr std::chrono::hours kWaitTimeout(24 * 365);

// Gloo asks its peers' addresses of a store, in which each rank has put its own under one key: one exchange is enough.
class ExchangedStore : public gloo::rendezvous::Store {
 public:
  explicit ExchangedStore(Control& control) : control_(control) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    std::string mine = key;
    mine.push_back('\0');
    mine.append(data.begin(), data.end());
    Result<std::vector<std::string>> all = control_.gather(mine);
    if (!all) throw std::runtime_error(all.failure().message);
    for (const std::string& each : *all) {
      const std::size_t end = each.find('\0');
      if (end == std::string::npos) throw std::runtime_error("a rank sent no address");
      values_[each.substr(0, end)].assign(each.begin() + static_cast<std::ptrdiff_t>(end) + 1, each.end());
    }
  }

  std::vector<char> get(const std::string& key) override {
    const auto at = values_.find(key);
    if (at == values_.end()) throw std::runtime_error("no rank has the address " + key);
    return at->second;
  }

  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  Control& control_;
  std::map<std::string, std::vector<char>> values_;
};

class GlooTransport : public Transport {
 public:
  explicit GlooTransport(std::shared_ptr<gloo::rendezvous::Context> context) : context_(std::move(context)) {}

  std::string send(Channel channel, const MessageHeader& header, std::span<const std::byte> data) override {
    MessageHeader copy = header;
    std::string error = send_one(channel.peer, slot(channel, false), &copy, sizeof(copy));
    // What is sent is only read.
    if (error.empty() && !data.empty())
      error = send_one(channel.peer, slot(channel, true), const_cast<std::byte*>(data.data()), data.size());
    return error;
  }

  std::string receive(Channel channel, MessageHeader& header, std::span<std::byte> data) override {
    std::string error = receive_one(channel.peer, slot(channel, false), &header, sizeof(header));
    if (error.empty() && header.bytes == data.size() && !data.empty())
      error = receive_one(channel.peer, slot(channel, true), data.data(), data.size());
    return error;
  }

  void cancel() override {
    const std::scoped_lock lock(mutex_);
    canceled_ = true;
    for (gloo::transport::UnboundBuffer* buffer : waiting_) {
      buffer->abortWaitSend();
      buffer->abortWaitRecv();
    }
  }

  void close() override { context_->closeConnections(); }

 private:
  static std::uint64_t slot(Channel channel, bool is_data) { return 2 * std::uint64_t{channel.number} + is_data; }

  // Enters a buffer among those that wait, unless all is canceled.
  class Waiting {
   public:
    Waiting(GlooTransport& transport, gloo::transport::UnboundBuffer& buffer) : transport_(transport), buffer_(buffer) {
      const std::scoped_lock lock(transport.mutex_);
      if (!transport.canceled_) transport.waiting_.insert(&buffer);
      may_wait = !transport.canceled_;
    }
    ~Waiting() {
      const std::scoped_lock lock(transport_.mutex_);
      transport_.waiting_.erase(&buffer_);
    }
    bool may_wait = false;

   private:
    GlooTransport& transport_;
    gloo::transport::UnboundBuffer& buffer_;
  };

  template <class Post, class Wait>
  std::string transfer(void* data, std::size_t size, const Post& post, const Wait& wait) {
    try {
      const std::unique_ptr<gloo::transport::UnboundBuffer> buffer = context_->createUnboundBuffer(data, size);
      const Waiting waiting(*this, *buffer);
      if (!waiting.may_wait) return "canceled";
      post(*buffer);
      return wait(*buffer) ? "" : "canceled";
    } catch (const std::exception& e) {
      return std::string("gloo: ") + e.what();
    }
  }

  std::string send_one(std::uint32_t peer, std::uint64_t slot, void* data, std::size_t size) {
    using Buffer = gloo::transport::UnboundBuffer;
    return transfer(
        data, size, [&](Buffer& b) { b.send(static_cast<int>(peer), slot); },
        [](Buffer& b) { return b.waitSend(nullptr, kWaitTimeout); });
  }

  std::string receive_one(std::uint32_t peer, std::uint64_t slot, void* data, std::size_t size) {
    using Buffer = gloo::transport::UnboundBuffer;
    return transfer(
        data, size, [&](Buffer& b) { b.recv(static_cast<int>(peer), slot); },
        [](Buffer& b) { return b.waitRecv(nullptr, kWaitTimeout); });
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::mutex mutex_;
  bool canceled_ = false;
  std::unordered_set<gloo::transport::UnboundBuffer*> waiting_;
};

}  // namespace

Result<std::unique_ptr<Transport>> connect_gloo(Control& control, const std::string& address) {
  try {
    gloo::transport::tcp::attr attributes(address.c_str());
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(control.rank()),
                                                               static_cast<int>(control.size()));
    context->setTimeout(kConnectTimeout);
    ExchangedStore store(control);
    context->connectFullMesh(store, device);
    return std::unique_ptr<Transport>(std::make_unique<GlooTransport>(std::move(context)));
  } catch (const std::exception& e) {
    return Failure{"the ranks cannot be connected by Gloo from address " + address + ": " + e.what()};
  }
}

}  // namespace stave
