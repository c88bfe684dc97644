// What a graph was captured with, which is run again and again: kept for as long as the process lives.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace stave::fake {

template <class T>
void keep(std::unique_ptr<T> each) {
  static std::mutex mutex;
  // Never destroyed: a stream may run after static objects are gone.
  static auto& all = *new std::vector<std::unique_ptr<T>>;
  const std::scoped_lock lock(mutex);
  all.push_back(std::move(each));
}

}  // namespace stave::fake
