// Typed numbers for the things a schedule counts, and vectors indexed by them.
// What an id means is said by the value that hands it out.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace stave {

/// A number that counts one kind of thing. Default: none.
template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t v) : value(v) {}
  constexpr bool valid() const { return value != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using DeviceId = Id<struct DeviceTag>;
using StageId = Id<struct StageTag>;
/// Position of an operation kind in `OpSet::kinds()`.
using KindId = Id<struct KindTag>;
/// One operation with its indices, as numbered by an `OpSet`.
using OpId = Id<struct OpTag>;
/// A message of a `Program`.
using MessageId = Id<struct MessageTag>;
/// A node of a `Program`: first the entries of its table, then its messages.
using NodeId = Id<struct NodeTag>;
/// A directed edge between two devices of a `Program`.
using EdgeId = Id<struct EdgeTag>;

/// A vector whose index is an id and not any number.
template <class I, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t n, const T& value = T()) : items_(n, value) {}

  T& operator[](I i) { return items_[i.value]; }
  const T& operator[](I i) const { return items_[i.value]; }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  I push_back(T value) {
    items_.push_back(std::move(value));
    return I(static_cast<std::uint32_t>(items_.size() - 1));
  }
  void resize(std::size_t n, const T& value = T()) { items_.resize(n, value); }
  void assign(std::size_t n, const T& value) { items_.assign(n, value); }
  void reserve(std::size_t n) { items_.reserve(n); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const std::vector<T>& raw() const { return items_; }
  std::vector<T>& raw() { return items_; }
  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace stave

template <class Tag>
struct std::hash<stave::Id<Tag>> {
  std::size_t operator()(stave::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>()(id.value); }
};
