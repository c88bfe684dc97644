// MessageCosts: what a message between two devices takes, by what it carries and, where that matters, by the devices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace stave {

/// T is Rational or Ticks. On one device there is no message, and nothing to ask.
template <class T>
class MessageCosts {
 public:
  /// Shape: [source * devices + target]; what stands where both are the same has no meaning.
  using Links = std::vector<T>;

  void assign(std::size_t payloads, T value) {
    one_.assign(payloads, value);
    links_.clear();
  }
  std::size_t size() const { return one_.size(); }

  /// Of a payload for which devices do not matter.
  const T& operator[](std::size_t payload) const { return one_[payload]; }
  T& operator[](std::size_t payload) { return one_[payload]; }
  /// From now on devices do not matter for `payload`.
  void set(std::size_t payload, T value) {
    one_[payload] = value;
    if (!links_.empty()) links_[payload] = nullptr;
  }

  bool by_link(std::size_t payload) const { return !links_.empty() && links_[payload] != nullptr; }
  /// None if devices do not matter. Payloads may share one.
  const std::shared_ptr<const Links>& links(std::size_t payload) const {
    static const std::shared_ptr<const Links> kNone;
    return links_.empty() ? kNone : links_[payload];
  }
  void set_links(std::size_t payload, std::uint32_t devices, std::shared_ptr<const Links> links) {
    links_.resize(one_.size());
    links_[payload] = std::move(links);
    devices_ = devices;
  }

  T of(std::size_t payload, std::uint32_t source, std::uint32_t target) const {
    return by_link(payload) ? (*links_[payload])[std::size_t(source) * devices_ + target] : one_[payload];
  }

  /// The same with every value as `f` gives it.
  template <class To, class F>
  MessageCosts<To> map(const F& f) const {
    MessageCosts<To> result;
    result.assign(one_.size(), To());
    std::vector<std::pair<const Links*, std::shared_ptr<const std::vector<To>>>> made;
    for (std::size_t p = 0; p < one_.size(); ++p) {
      if (!by_link(p)) {
        result.set(p, f(one_[p]));
        continue;
      }
      const Links* const from = links_[p].get();
      auto same = std::find_if(made.begin(), made.end(), [&](const auto& each) { return each.first == from; });
      if (same == made.end()) {
        std::vector<To> values;
        values.reserve(from->size());
        for (const T& each : *from) values.push_back(f(each));
        made.push_back({from, std::make_shared<const std::vector<To>>(std::move(values))});
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
};

}  // namespace stave
