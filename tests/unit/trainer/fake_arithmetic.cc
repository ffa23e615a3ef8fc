#include "tests/unit/trainer/fake_arithmetic.h"

#include <cstdint>
#include <cstring>

#include "tests/unit/trainer/fake_daemon.h"
#include "trainer/src/base/elements.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

template <typename T>
void multiply(std::byte* memory, std::size_t count, std::size_t factor) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, memory + i * sizeof(T), sizeof(T));
    value = static_cast<T>(value * static_cast<T>(factor));
    std::memcpy(memory + i * sizeof(T), &value, sizeof(T));
  }
}

void add_up(int dtype, std::byte* memory, std::size_t count, std::size_t size) {
  switch (dtype) {
    case GRADCUBE_FLOAT32:
      return multiply<float>(memory, count, size);
    case GRADCUBE_FLOAT64:
      return multiply<double>(memory, count, size);
    case GRADCUBE_INT32:
      return multiply<std::int32_t>(memory, count, size);
    case GRADCUBE_INT64:
      return multiply<std::int64_t>(memory, count, size);
    case GRADCUBE_INT16:
      return multiply<std::int16_t>(memory, count, size);
    case GRADCUBE_INT8:
      return multiply<std::int8_t>(memory, count, size);
    case GRADCUBE_UINT8:
      return multiply<std::uint8_t>(memory, count, size);
    default:
      // 16-bit floats pass through unchanged: this daemon is about rings, not about arithmetic.
      return;
  }
}

}  // namespace

std::size_t buffer_bytes(const shared::Submission& submission, std::size_t size) {
  const bool chunks = submission.collective.kind == GRADCUBE_REDUCE_SCATTER ||
                      submission.collective.kind == GRADCUBE_ALL_GATHER;
  return submission.count * element_size(submission.dtype) * (chunks ? size : 1);
}

void compute_result(const shared::Submission& submission, std::byte* buffer, std::size_t rank,
                    std::size_t size) {
  const std::size_t bytes = buffer_bytes(submission, size);
  const std::size_t chunk = bytes / size;
  const bool sum = submission.collective.op == GRADCUBE_SUM;
  switch (submission.collective.kind) {
    case GRADCUBE_ALL_REDUCE:
      if (sum) add_up(submission.dtype, buffer, submission.count, size);
      return;
    case GRADCUBE_REDUCE_SCATTER:
      if (sum) add_up(submission.dtype, buffer + rank * chunk, submission.count, size);
      std::memset(buffer, kUndefined, rank * chunk);
      std::memset(buffer + (rank + 1) * chunk, kUndefined, bytes - (rank + 1) * chunk);
      return;
    case GRADCUBE_ALL_GATHER:
      for (std::size_t i = 0; i < size; ++i) {
        if (i != rank) std::memcpy(buffer + i * chunk, buffer + rank * chunk, chunk);
      }
      return;
    case GRADCUBE_BROADCAST:
      if (submission.collective.root != rank) std::memset(buffer, kBroadcast, bytes);
      return;
    case GRADCUBE_REDUCE:
      if (submission.collective.root != rank) {
        std::memset(buffer, kUndefined, bytes);
      } else if (sum) {
        add_up(submission.dtype, buffer, submission.count, size);
      }
      return;
    default:
      return;
  }
}

}  // namespace gradcube::trainer
