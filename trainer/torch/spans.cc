#include "trainer/torch/spans.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

namespace gradcube::pytorch {
namespace {

bool is_spread(const Span& span) { return !span.runs.empty(); }

// Which bytes of a stretch of memory are read, and which are written.
class Uses {
 public:
  // Spans and their runs begin at multiples of `unit` bytes from the stretch's begin, and are so
  // long.
  Uses(const char* begin, const char* end, std::size_t unit)
      : begin_(begin),
        unit_(static_cast<std::ptrdiff_t>(unit)),
        uses_(static_cast<std::size_t>(end - begin) / unit, kNone) {}

  // False: it shares a byte with an earlier one, or its runs do, and one of the two is written.
  bool add(const Span& span) {
    if (!is_spread(span)) return add_run(span.begin, span.bytes, span.is_written);
    return add_runs(span, span.begin, 0);
  }

 private:
  enum Use : std::uint8_t { kNone, kRead, kWritten };

  bool add_runs(const Span& span, const char* begin, std::size_t first) {
    if (first == span.runs.size()) return add_run(begin, span.run, span.is_written);
    const Span::Dimension& dimension = span.runs[first];
    for (std::size_t i = 0; i < dimension.count; ++i) {
      if (!add_runs(span, begin + i * dimension.step, first + 1)) return false;
    }
    return true;
  }

  bool add_run(const char* begin, std::size_t bytes, bool is_written) {
    const auto first = uses_.begin() + (begin - begin_) / unit_;
    const auto last = first + static_cast<std::ptrdiff_t>(bytes) / unit_;
    const auto is_met = [is_written](std::uint8_t use) {
      return is_written ? use != kNone : use == kWritten;
    };
    if (std::any_of(first, last, is_met)) return false;
    std::fill(first, last, is_written ? kWritten : kRead);
    return true;
  }

  const char* begin_;
  std::ptrdiff_t unit_;
  std::vector<std::uint8_t> uses_;
};

// Whether none of these, each without overlaps within, shares a byte with another one, as a step
// that all have in common shows: what lies within one step of each lies beside that of all others,
// as columns of a matrix do. False: it does not show that.
bool are_side_by_side(std::vector<Span> spans) {
  const char* const begin = spans.front().begin;
  const std::size_t step = is_spread(spans.front()) ? spans.front().runs.front().step : 0;
  for (Span& span : spans) {
    if (!is_spread(span) || span.runs.front().step != step) return false;
    span.bytes -= (span.runs.front().count - 1) * step;
    span.begin = begin + static_cast<std::size_t>(span.begin - begin) % step;
    if (static_cast<std::size_t>(span.begin - begin) + span.bytes > step) return false;
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& one, const Span& other) { return one.begin < other.begin; });
  return std::adjacent_find(spans.begin(), spans.end(), overlap) == spans.end();
}

// None of these, whose extents meet, shares a byte with another one or has one twice.
bool are_apart(const std::vector<Span>& spans) {
  const std::less<const char*> before;
  const char* begin = spans.front().begin;
  const char* end = begin;
  for (const Span& span : spans) {
    begin = std::min(begin, span.begin, before);
    end = std::max(end, span.begin + span.bytes, before);
  }
  std::size_t unit = 0;
  for (const Span& span : spans) {
    unit = std::gcd(unit, static_cast<std::size_t>(span.begin - begin));
    unit = std::gcd(unit, is_spread(span) ? span.run : span.bytes);
    for (const Span::Dimension& one : span.runs) unit = std::gcd(unit, one.step);
  }
  Uses uses(begin, end, unit);
  return std::all_of(spans.begin(), spans.end(),
                     [&uses](const Span& one) { return uses.add(one); });
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

}  // namespace

std::runtime_error shared_memory() {
  return std::runtime_error(
      "tensors of this call share memory, and it is written: expected memory of its own for each "
      "of them");
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
  if (!runs_are_nested(span) && !are_apart({span})) {
    throw std::runtime_error(
        "a tensor is to be written whose elements share memory, as those of expand() do: expected "
        "memory of its own for each of them");
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
    if (is_a_write_met && !are_side_by_side({first, last}) &&
        (std::none_of(first, last, is_spread) || !are_apart({first, last}))) {
      throw shared_memory();
    }
    first = last;
  }
}

}  // namespace gradcube::pytorch
