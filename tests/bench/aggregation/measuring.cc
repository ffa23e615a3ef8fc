#include "tests/bench/aggregation/measuring.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <time.h>

namespace gradcube::aggregation::bench {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Memory make_memory(std::size_t bytes) {
  const std::size_t whole_pages = (bytes + kPage - 1) / kPage * kPage;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, whole_pages)));
  if (!memory) throw std::bad_alloc();
  std::memset(memory.get(), 0, whole_pages);
  return memory;
}

}  // namespace gradcube::aggregation::bench
