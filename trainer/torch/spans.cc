#include "trainer/torch/spans.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

namespace gradcube::pytorch {
namespace {

bool is_spread(const Span& span) { return !span.runs.empty(); }

// Whether none of these, each without overlaps within, shares a byte with another one, as this step
// shows: modulo the step, each of them lies beside all others, as columns of a matrix do. The first
// one begins first. False: it does not show that.
bool are_side_by_side(std::vector<Span> spans, std::size_t step) {
  const char* const begin = spans.front().begin;
  for (Span& span : spans) {
    for (const Span::Dimension& one : span.runs) {
      if (one.step % step == 0) span.bytes -= (one.count - 1) * one.step;
    }
    span.begin = begin + static_cast<std::size_t>(span.begin - begin) % step;
    if (static_cast<std::size_t>(span.begin - begin) + span.bytes > step) return false;
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& one, const Span& other) { return one.begin < other.begin; });
  return std::adjacent_find(spans.begin(), spans.end(), overlap) == spans.end();
}

// Whether no two runs share a byte, which their steps show where each is longer than all that lies
// within it.
bool runs_are_nested(const Span& span) {
  std::size_t within = span.run;
  return std::all_of(span.runs.rbegin(), span.runs.rend(), [&within](const Span::Dimension& one) {
    const bool is_long = one.step >= within;
    within += (one.count - 1) * one.step;
    return is_long;
  });
}

// Whether some step of theirs shows it, or what divides all of them.
bool are_columns(const std::vector<Span>& spans) {
  const auto spread = std::find_if(spans.begin(), spans.end(), is_spread);
  if (spread == spans.end()) return false;
  const auto is_shown = [&spans](const Span::Dimension& one) {
    return are_side_by_side(spans, one.step);
  };
  if (std::any_of(spread->runs.begin(), spread->runs.end(), is_shown)) return true;
  std::size_t common = 0;
  for (const Span& span : spans) {
    for (const Span::Dimension& one : span.runs) common = std::gcd(common, one.step);
  }
  return are_side_by_side(spans, common);
}

}  // namespace

std::runtime_error shared_memory() {
  return std::runtime_error(
      "tensors of this call share memory, or lie among each other in another way than columns do, "
      "and it is written: expected memory of its own for each of them");
}

bool overlap(const Span& one, const Span& other) {
  const std::less<const char*> before;
  return one.bytes != 0 && other.bytes != 0 && before(one.begin, other.begin + other.bytes) &&
         before(other.begin, one.begin + one.bytes);
}

Span extent_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {static_cast<const char*>(tensor.data_ptr()),
          static_cast<std::size_t>(last + 1) * tensor.element_size(), false};
}

std::optional<Span> written_span(const at::Tensor& tensor) {
  Span span = extent_of(tensor);
  if (span.bytes == 0) return std::nullopt;
  span.is_written = true;
  span.run = tensor.element_size();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) == 1) continue;
    span.runs.push_back({static_cast<std::size_t>(tensor.size(i)),
                         static_cast<std::size_t>(tensor.stride(i)) * tensor.element_size()});
  }
  std::sort(span.runs.begin(), span.runs.end(),
            [](const auto& one, const auto& other) { return one.step > other.step; });
  for (; is_spread(span) && span.runs.back().step == span.run; span.runs.pop_back()) {
    span.run *= span.runs.back().count;
  }
  if (!runs_are_nested(span)) {
    throw std::runtime_error(
        "a tensor is to be written whose elements share memory, as those of expand() do, or whose "
        "rows lie among each other: expected memory of its own for each of them");
  }
  return span;
}

void check_apart(const std::vector<Span>& given) {
  if (given.size() < 2) return;
  std::vector<Span> spans = given;
  const auto is_empty = [](const Span& span) { return span.bytes == 0; };
  spans.erase(std::remove_if(spans.begin(), spans.end(), is_empty), spans.end());
  std::sort(spans.begin(), spans.end(), [](const Span& one, const Span& other) {
    return std::less<const char*>()(one.begin, other.begin);
  });
  const std::less<const char*> before;
  for (auto first = spans.begin(); first != spans.end();) {
    // Those whose extents meet: how far any of them reaches, and any that is written.
    const char* end = first->begin;
    const char* written_end = first->begin;
    bool is_a_write_met = false;
    auto last = first;
    for (; last == first || (last != spans.end() && before(last->begin, end)); ++last) {
      is_a_write_met |= before(last->begin, last->is_written ? end : written_end);
      end = std::max(end, last->begin + last->bytes, before);
      if (last->is_written) written_end = std::max(written_end, last->begin + last->bytes, before);
    }
    if (is_a_write_met && !are_columns({first, last})) throw shared_memory();
    first = last;
  }
}

}  // namespace gradcube::pytorch
