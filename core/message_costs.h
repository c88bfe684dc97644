// MessageCosts: what a message between two devices takes, by what it carries and, where that matters, by the devices and by
// its size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/op_set.h"

namespace stave {

/// Which size a message has, where microbatches or slices are of unlike length: that of the op that makes it. Size 0 is
/// the mean of all, of an op that has no microbatch.
struct MessageSizes {
  /// One more than the largest size.
  std::uint32_t count = 1;
  std::uint32_t slices = 1;
  /// Shape: [microbatch * slices + slice].
  std::vector<std::uint32_t> of;
  friend bool operator==(const MessageSizes&, const MessageSizes&) = default;
};

/// What messages take from each device to each other; T as in MessageCosts. On one device there is no message: what stands
/// where both are the same has no meaning.
template <class T>
struct LinkCosts {
  LinkCosts() = default;
  /// One value for every two devices, whatever the size. Shape: [source * devices + target].
  explicit LinkCosts(std::vector<T> each) : kinds(each.size()), values(std::move(each)) {}

  /// The kind of link between two devices: [source * devices + target]. Empty: each two have one of their own.
  std::vector<std::uint32_t> kind;
  std::size_t kinds = 0;
  /// Shape: [size * kinds + kind]; of one size alone if sizes do not matter.
  std::vector<T> values;

  bool by_size() const { return values.size() > kinds; }
  const T& at(std::size_t pair, std::uint32_t size) const {
    const std::size_t link = kind.empty() ? pair : kind[pair];
    return values[by_size() ? size * kinds + link : link];
  }
};

/// T is Rational or Ticks.
template <class T>
class MessageCosts {
 public:
  using Links = LinkCosts<T>;

  void assign(std::size_t payloads, T value) {
    one_.assign(payloads, value);
    links_.clear();
    sizes_ = nullptr;
  }
  std::size_t size() const { return one_.size(); }

  /// Of a payload for which devices do not matter.
  const T& operator[](std::size_t payload) const { return one_[payload]; }
  T& operator[](std::size_t payload) { return one_[payload]; }
  /// From now on neither devices nor sizes matter for `payload`.
  void set(std::size_t payload, T value) {
    one_[payload] = value;
    if (!links_.empty()) links_[payload] = nullptr;
  }

  bool by_link(std::size_t payload) const { return !links_.empty() && links_[payload] != nullptr; }
  bool by_size(std::size_t payload) const { return by_link(payload) && links_[payload]->by_size(); }
  /// None if neither devices nor sizes matter. Payloads may share one.
  const std::shared_ptr<const Links>& links(std::size_t payload) const {
    static const std::shared_ptr<const Links> kNone;
    return links_.empty() ? kNone : links_[payload];
  }
  void set_links(std::size_t payload, std::uint32_t devices, std::shared_ptr<const Links> links) {
    links_.resize(one_.size());
    links_[payload] = std::move(links);
    devices_ = devices;
  }
  /// What the sizes of links are; none where none matters.
  const std::shared_ptr<const MessageSizes>& sizes() const { return sizes_; }
  void set_sizes(std::shared_ptr<const MessageSizes> sizes) { sizes_ = std::move(sizes); }

  /// The size of what `producer` sends.
  std::uint32_t size_of(const OpSet& ops, OpId producer) const {
    if (sizes_ == nullptr) return 0;
    const std::uint32_t microbatch = ops.microbatch(producer);
    if (microbatch == OpId::kNone) return 0;
    const std::uint32_t slice = ops.index(producer, IndexRole::Slice);
    return sizes_->of[std::size_t(microbatch) * sizes_->slices + (slice == OpId::kNone ? 0 : slice)];
  }

  T of(std::size_t payload, std::uint32_t source, std::uint32_t target, std::uint32_t size) const {
    return by_link(payload) ? links_[payload]->at(std::size_t(source) * devices_ + target, size) : one_[payload];
  }
  /// What that which `producer` makes takes from device to device.
  T from(const OpSet& ops, OpId producer, std::size_t payload, std::uint32_t source, std::uint32_t target) const {
    return by_link(payload) ? of(payload, source, target, size_of(ops, producer)) : one_[payload];
  }

  /// The same with every value as `f` gives it.
  template <class To, class F>
  MessageCosts<To> map(const F& f) const {
    MessageCosts<To> result;
    result.assign(one_.size(), To());
    result.set_sizes(sizes_);
    std::vector<std::pair<const Links*, std::shared_ptr<const LinkCosts<To>>>> made;
    for (std::size_t p = 0; p < one_.size(); ++p) {
      if (!by_link(p)) {
        result.set(p, f(one_[p]));
        continue;
      }
      const Links* const from = links_[p].get();
      auto same = std::find_if(made.begin(), made.end(), [&](const auto& each) { return each.first == from; });
      if (same == made.end()) {
        LinkCosts<To> to;
        to.kind = from->kind;
        to.kinds = from->kinds;
        to.values.reserve(from->values.size());
        for (const T& each : from->values) to.values.push_back(f(each));
        made.push_back({from, std::make_shared<const LinkCosts<To>>(std::move(to))});
        same = made.end() - 1;
      }
      result.set_links(p, devices_, same->second);
    }
    return result;
  }

 private:
  std::vector<T> one_;
  /// By payload; empty if devices matter for none.
  std::vector<std::shared_ptr<const Links>> links_;
  std::uint32_t devices_ = 0;
  std::shared_ptr<const MessageSizes> sizes_;
};

}  // namespace stave
