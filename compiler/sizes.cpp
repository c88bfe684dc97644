// The sizes that settings give in lists, and the slices of each microbatch, which may differ.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/evaluate.h"

namespace stave {

namespace {

/// Most layers or tokens of one part, and most slices in all where they differ.
constexpr std::int64_t kMaxSize = std::int64_t(1) << 30;
constexpr std::size_t kMaxSliceSizes = std::size_t(1) << 24;

constexpr std::array<std::string_view, 4> kPart = {"device", "stage", "microbatch", "slice"};

}  // namespace

Span Evaluator::element_span(TermId list, std::int64_t length, std::int64_t i) const {
  const Term& term = code_[list];
  const bool written = term.kind == TermKind::List && term.count == length &&
                       (length != 1 || code_[operand(term, 0)].kind != TermKind::Each);
  return code_.spans[written ? operand(term, static_cast<std::uint32_t>(i)) : list];
}

std::uint32_t Evaluator::size(const Datum& datum, SettingKind kind, Span span) {
  const std::string_view part = kPart[static_cast<std::size_t>(kind)];
  if (datum.is_whole() && datum.integer() >= 1 && datum.integer() <= kMaxSize)
    return static_cast<std::uint32_t>(datum.integer());
  if (!datum.is_number())
    fail("wrong-kind", span, fmt::format("the size of a {} is a number, and this is {}", part, datum.what()),
         datum.text());
  fail("sizes", span, fmt::format("the size of a {} is {}; it must be whole and from 1 to {}", part, datum.text(),
                                  kMaxSize));
}

std::int64_t Evaluator::read_sizes(SettingKind kind, TermId id, const Datum& list, std::int64_t most) {
  const Span span = code_.spans[id];
  const std::int64_t length = list.length();
  const auto row = [&](TermId of, const Datum& sizes, std::vector<std::uint32_t>& to) {
    // The count is refused by whoever asked for it.
    if (sizes.length() > most) return;
    to.reserve(static_cast<std::size_t>(sizes.length()));
    for (std::int64_t k = 0; k < sizes.length(); ++k) {
      step(span);
      to.push_back(size(sizes[k], kind, of.valid() ? element_span(of, sizes.length(), k) : span));
    }
  };
  if (kind == SettingKind::Devices)
    fail("sizes", span, "devices have no sizes: give their number", list.text());
  if (kind == SettingKind::Stages) {
    sizes_.stages.clear();
    row(id, list, sizes_.stages);
    return length;
  }
  if (kind == SettingKind::Microbatches) {
    sizes_.microbatches.clear();
    row(id, list, sizes_.microbatches);
    return length;
  }
  sizes_.slices.clear();
  slices_differ_ = false;
  slices_by_microbatch_ = length > 0 && list[0].is_list();
  if (!slices_by_microbatch_) {
    row(id, list, sizes_.slices.emplace_back());
    return length;
  }
  std::int64_t result = 0;
  std::size_t total = 0;
  for (std::int64_t m = 0; m < length; ++m) {
    const Span at = element_span(id, length, m);
    const Datum sizes = list[m];
    if (!sizes.is_list())
      fail("wrong-kind", at, fmt::format("the slices of a microbatch are a list, and this is {}", sizes.what()),
           sizes.text());
    total += static_cast<std::size_t>(std::max<std::int64_t>(0, sizes.length()));
    if (total > kMaxSliceSizes)
      fail("too-many", span, fmt::format("more than {} slices of all microbatches", kMaxSliceSizes));
    if (sizes.length() < 1 || sizes.length() > most)
      fail("count", at, fmt::format("the number of slices of microbatch {} is {}; it must be from 1 to {}", m,
                                    sizes.length(), most));
    const bool in_text = at.begin != span.begin || at.end != span.end;
    row(in_text ? operand(code_[id], static_cast<std::uint32_t>(m)) : TermId(), sizes, sizes_.slices.emplace_back());
    slices_differ_ = slices_differ_ || (m > 0 && sizes.length() != result);
    result = std::max(result, sizes.length());
  }
  return result;
}

void Evaluator::check_slice_rows() {
  count(SettingKind::Slices);
  const std::uint32_t microbatches = count(SettingKind::Microbatches);
  if (slices_by_microbatch_ && sizes_.slices.size() != microbatches)
    fail("sizes", code_.spans[code_.settings[static_cast<std::size_t>(SettingKind::Slices)]->value],
         fmt::format("these are the slices of {} microbatch{}, and there are {}", sizes_.slices.size(),
                     sizes_.slices.size() == 1 ? "" : "es", microbatches),
         parameters());
}

bool Evaluator::slices_differ() {
  check_slice_rows();
  return slices_differ_;
}

std::uint32_t Evaluator::slices_of(std::uint32_t microbatch) {
  const std::uint32_t most = count(SettingKind::Slices);
  if (!slices_by_microbatch_) return most;
  check_slice_rows();
  return static_cast<std::uint32_t>(sizes_.slices[microbatch].size());
}

const Sizes& Evaluator::sizes() {
  count(SettingKind::Stages);
  check_slice_rows();
  if (sizes_.microbatches.empty() || sizes_.slices.empty()) return sizes_;
  const TermId slices = code_.settings[static_cast<std::size_t>(SettingKind::Slices)]->value;
  const TermId microbatches = code_.settings[static_cast<std::size_t>(SettingKind::Microbatches)]->value;
  const std::int64_t rows = static_cast<std::int64_t>(sizes_.slices.size());
  const auto sum_of = [](const std::vector<std::uint32_t>& row) {
    std::uint64_t sum = 0;
    for (std::uint32_t each : row) sum += each;
    return sum;
  };
  const std::uint64_t of_all = sum_of(sizes_.slices.front());
  for (std::size_t m = 0; m < sizes_.microbatches.size(); ++m) {
    const std::uint64_t sum = slices_by_microbatch_ ? sum_of(sizes_.slices[m]) : of_all;
    const std::int64_t i = static_cast<std::int64_t>(m);
    if (sum == sizes_.microbatches[m]) continue;
    fail("sizes", slices_by_microbatch_ ? element_span(slices, rows, i) : code_.spans[slices],
         fmt::format("the slices of microbatch {} have {} tokens in all, and the microbatch has {}", m, sum,
                     sizes_.microbatches[m]),
         "",
         {element_span(microbatches, static_cast<std::int64_t>(sizes_.microbatches.size()), i), "of this many tokens"});
  }
  return sizes_;
}

}  // namespace stave
