// Every order of a small schedule, by enumeration: the optimum that a bound must not pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "scheduler/bounds/instance.h"

namespace stave::test {

struct Optimum {
  Ticks makespan = INT64_MAX;
  /// The least longest span, each op as early as its order allows.
  Ticks span = INT64_MAX;
  std::uint64_t orders = 0;
};

/// Shape of the limits: one by unit. `most` below 0: no limit.
struct SmallLimit {
  std::uint32_t device = 0;
  std::int64_t most = -1;
  std::vector<std::int64_t> taken;
  std::vector<std::int64_t> given;
};

/// Tries all orders of the units of every device. With `fifo` a unit comes after that of the class before it.
class EveryOrder {
 public:
  EveryOrder(const bounds::Instance& data, std::vector<SmallLimit> limits, bool fifo)
      : data_(data), limits_(std::move(limits)), before_(data.size()), here_(data.size()) {
    for (const bounds::Arc& arc : data.arcs) {
      before_[arc.to].push_back({arc.from, arc.lag});
      if (data.device(arc.from) == data.device(arc.to)) here_[arc.to].push_back(arc.from);
    }
    if (fifo) return;
    // The arcs between the units of a class are those of `fifo`.
    for (const bounds::UnitClass& each : data.classes)
      for (std::size_t k = 1; k < each.units.size(); ++k) {
        const std::uint32_t from = each.units[k - 1];
        const std::uint32_t to = each.units[k];
        std::erase_if(before_[to], [&](const auto& arc) { return arc.first == from; });
        std::erase(here_[to], from);
      }
  }

  Optimum best() {
    words_.assign(data_.devices(), {});
    for (std::uint32_t d = 0; d < data_.devices(); ++d) {
      std::vector<std::uint32_t> units;
      for (std::uint32_t unit = 0; unit < data_.size(); ++unit)
        if (data_.device(unit) == d) units.push_back(unit);
      std::vector<std::uint32_t> word;
      done_.assign(data_.size(), false);
      extend(d, units, word);
    }
    chosen_.assign(data_.devices(), nullptr);
    combine(0);
    return result_;
  }

 private:
  bool fits(std::uint32_t d, const std::vector<std::uint32_t>& word, std::uint32_t next) const {
    for (const SmallLimit& limit : limits_) {
      if (limit.device != d || limit.taken[next] == 0) continue;
      std::int64_t held = limit.taken[next];
      for (std::uint32_t unit : word) held += limit.taken[unit] - limit.given[unit];
      if (held > limit.most) return false;
    }
    return true;
  }

  void extend(std::uint32_t d, const std::vector<std::uint32_t>& units, std::vector<std::uint32_t>& word) {
    if (word.size() == units.size()) {
      words_[d].push_back(word);
      return;
    }
    for (std::uint32_t unit : units) {
      if (done_[unit] || !fits(d, word, unit)) continue;
      const bool ready = std::all_of(here_[unit].begin(), here_[unit].end(), [&](std::uint32_t each) { return done_[each]; });
      if (!ready) continue;
      done_[unit] = true;
      word.push_back(unit);
      extend(d, units, word);
      word.pop_back();
      done_[unit] = false;
    }
  }

  void combine(std::uint32_t d) {
    if (d == data_.devices()) return price();
    for (const std::vector<std::uint32_t>& word : words_[d]) {
      chosen_[d] = &word;
      combine(d + 1);
    }
  }

  void price() {
    ++result_.orders;
    end_.assign(data_.size(), -1);
    next_.assign(data_.devices(), 0);
    now_.assign(data_.devices(), 0);
    Ticks span = 0;
    first_.assign(data_.devices(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t d = 0; d < data_.devices(); ++d)
        for (; next_[d] < chosen_[d]->size(); ++next_[d]) {
          const std::uint32_t unit = (*chosen_[d])[next_[d]];
          Ticks start = now_[d];
          bool ready = true;
          for (const auto& [from, lag] : before_[unit]) {
            ready = ready && end_[from] >= 0;
            start = std::max(start, end_[from] + lag);
          }
          if (!ready) break;
          if (next_[d] == 0) first_[d] = start;
          end_[unit] = now_[d] = start + data_.length[unit];
          moved = true;
        }
    }
    for (std::uint32_t d = 0; d < data_.devices(); ++d) {
      if (next_[d] < chosen_[d]->size()) return;
      span = std::max(span, now_[d] - first_[d]);
    }
    result_.makespan = std::min(result_.makespan, *std::max_element(now_.begin(), now_.end()));
    result_.span = std::min(result_.span, span);
  }

  const bounds::Instance& data_;
  std::vector<SmallLimit> limits_;
  std::vector<std::vector<std::pair<std::uint32_t, Ticks>>> before_;
  std::vector<std::vector<std::uint32_t>> here_;
  std::vector<bool> done_;
  std::vector<std::vector<std::vector<std::uint32_t>>> words_;
  std::vector<const std::vector<std::uint32_t>*> chosen_;
  std::vector<Ticks> end_;
  std::vector<std::size_t> next_;
  std::vector<Ticks> now_;
  std::vector<Ticks> first_;
  Optimum result_;
};

}  // namespace stave::test
