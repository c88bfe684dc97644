// Result: a value, or why the command line or the world did not allow it (exit status 2).
// A wrong schedule is not a Result but a Diagnostic; a bug of ours is STAVE_CHECK.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/check.h"

namespace stave {

/// What failed: the operation in the user's words, with the value, the rank and the library's text where there are such.
struct Failure {
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Failure failure) : failure_(std::move(failure)) {}

  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }
  T& value() {
    STAVE_CHECK(ok(), "value of a failed Result");
    return *value_;
  }
  const T& value() const {
    STAVE_CHECK(ok(), "value of a failed Result");
    return *value_;
  }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  const Failure& failure() const { return failure_; }

 private:
  std::optional<T> value_;
  Failure failure_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}

  explicit operator bool() const { return !failure_; }
  bool ok() const { return !failure_; }
  const Failure& failure() const { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

}  // namespace stave
