#include "scheduler/bounds/reach.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace stave::bounds {

ArcsInto::ArcsInto(const Instance& instance, std::size_t count) : first(instance.size() + 1, 0), from(count) {
  const std::span<const Arc> arcs = std::span(instance.arcs).first(count);
  for (const Arc& arc : arcs) ++first[arc.to + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const Arc& arc : arcs) from[next[arc.to]++] = {arc.from, arc.lag};
}

Reach::Reach(const Instance& instance, const std::vector<std::uint32_t>& order) : column_(instance.classes.size(), 0) {
  for (const std::vector<std::uint32_t>& classes : instance.classes_of)
    for (std::uint32_t i = 0; i < classes.size(); ++i) column_[classes[i]] = i;
  std::size_t size = 0;
  for (std::uint32_t unit = 0; unit < instance.size(); ++unit) {
    at_.push_back(size);
    size += instance.classes_of[instance.device(unit)].size();
  }
  before_.assign(size, 0);
  after_.assign(size, 0);

  const ArcsInto into(instance);
  std::vector<std::uint32_t> counts;
  for (std::uint32_t d = 0; d < instance.devices(); ++d) {
    const std::vector<std::uint32_t>& classes = instance.classes_of[d];
    const std::size_t width = classes.size();
    // Of every unit of every device: the ancestors on device d, itself with them.
    counts.assign(std::size_t(instance.size()) * width, 0);
    for (std::uint32_t unit : order) {
      std::uint32_t* const mine = &counts[unit * width];
      for (std::uint32_t k = into.first[unit]; k < into.first[unit + 1]; ++k) {
        const std::uint32_t* const theirs = &counts[into.from[k].first * width];
        for (std::size_t i = 0; i < width; ++i) mine[i] = std::max(mine[i], theirs[i]);
      }
      if (instance.device(unit) != d) continue;
      std::copy(mine, mine + width, &before_[at_[unit]]);
      std::uint32_t& own = mine[column_[instance.class_of[unit]]];
      own = std::max(own, instance.place[unit] + 1);
    }
    // And the first descendants.
    for (std::size_t i = 0; i < width; ++i) {
      const auto none = static_cast<std::uint32_t>(instance.classes[classes[i]].units.size());
      for (std::size_t unit = 0; unit < instance.size(); ++unit) counts[unit * width + i] = none;
    }
    for (std::size_t n = order.size(); n-- > 0;) {
      const std::uint32_t unit = order[n];
      std::uint32_t* const mine = &counts[unit * width];
      if (instance.device(unit) == d) {
        std::copy(mine, mine + width, &after_[at_[unit]]);
        std::uint32_t& own = mine[column_[instance.class_of[unit]]];
        own = std::min(own, instance.place[unit]);
      }
      for (std::uint32_t k = into.first[unit]; k < into.first[unit + 1]; ++k) {
        std::uint32_t* const theirs = &counts[into.from[k].first * width];
        for (std::size_t i = 0; i < width; ++i) theirs[i] = std::min(theirs[i], mine[i]);
      }
    }
  }
}

Reach Reach::reversed(const Instance& instance) const {
  Reach result = *this;
  for (std::uint32_t unit = 0; unit < instance.size(); ++unit) {
    const std::vector<std::uint32_t>& classes = instance.classes_of[instance.device(unit)];
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const auto size = static_cast<std::uint32_t>(instance.classes[classes[i]].units.size());
      result.before_[at_[unit] + i] = size - after_[at_[unit] + i];
      result.after_[at_[unit] + i] = size - before_[at_[unit] + i];
    }
  }
  return result;
}

}  // namespace stave::bounds
