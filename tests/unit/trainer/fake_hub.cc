#include "tests/unit/trainer/fake_hub.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/src/elements.h"

namespace gradcube::trainer {
namespace {

template <typename T>
T take(const std::byte*& from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  from += sizeof(value);
  return value;
}

std::string take_text(const std::byte*& from, std::size_t bytes) {
  std::string text(reinterpret_cast<const char*>(from), bytes);
  from += bytes;
  return text;
}

}  // namespace

FakeHub::FakeHub(const std::byte* table, std::size_t bytes) {
  const std::byte* at = table;
  const auto begin = take<shared::HubTable>(at);
  chunk_bytes_ = begin.chunk_bytes;
  optimizer_ = take_text(at, begin.optimizer_bytes);
  for (std::uint32_t i = 0; i < begin.keys; ++i) {
    const auto given = take<shared::HubTableKey>(at);
    FakeHubKey& key = keys_.emplace_back();
    key.name = take_text(at, given.name_bytes);
    key.elements = given.elements;
    key.dtype = given.dtype;
    key.begin = bytes_;
    key.bytes = given.elements * element_size(static_cast<int>(given.dtype));
    bytes_ += (key.bytes + 63) / 64 * 64;
  }
  if (at != table + bytes) std::abort();
  memory_ = Descriptor(::memfd_create("gradcube-test-hub", MFD_CLOEXEC));
  if (::ftruncate(memory_.get(), static_cast<off_t>(bytes_)) != 0) std::abort();
  void* mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped == MAP_FAILED) std::abort();
  weights_ = static_cast<std::byte*>(mapped);
}

FakeHub::~FakeHub() { ::munmap(weights_, bytes_); }

void FakeHub::push(const shared::Submission& submission, const std::byte* values) {
  const FakeHubKey& key = keys_.at(submission.root);
  if (submission.count != key.elements || submission.dtype != key.dtype) std::abort();
  std::memcpy(weights_ + key.begin, values, key.bytes);
}

}  // namespace gradcube::trainer
