#include "tests/unit/trainer/fake_hub.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "aggregation/element.h"
#include "trainer/src/base/elements.h"

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
  staleness_ = begin.staleness;
  optimizer_ = take_text(at, begin.optimizer_bytes);
  for (std::uint32_t i = 0; i < begin.aggregators; ++i) {
    aggregators_.push_back(take<std::uint32_t>(at));
  }
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
  if (optimizer_.starts_with("momentum")) rule_ = 1;
  if (optimizer_.starts_with("adam")) rule_ = 3;
  states_ = rule_ == 0 ? 0 : rule_ == 1 ? 1 : 2;
  all_bytes_ = bytes_ + sizeof(shared::HubHeader);
  for (FakeHubKey& key : keys_) {
    key.range = all_bytes_;
    all_bytes_ += sizeof(shared::HubRange);
  }
  for (const FakeHubKey& key : keys_) all_bytes_ += 3 * key.elements * sizeof(float);
  memory_ = Descriptor(::memfd_create("gradcube-test-hub", MFD_CLOEXEC));
  if (::ftruncate(memory_.get(), static_cast<off_t>(all_bytes_)) != 0) std::abort();
  void* mapped = ::mmap(nullptr, all_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped == MAP_FAILED) std::abort();
  weights_ = static_cast<std::byte*>(mapped);
  list_ranges();
}

FakeHub::~FakeHub() { ::munmap(weights_, all_bytes_); }

void FakeHub::list_ranges() {
  auto* state = reinterpret_cast<shared::HubHeader*>(weights_ + bytes_);
  *state = {static_cast<std::uint32_t>(keys_.size()),
            rule_,
            {0.5, 0.9, 0, 0.9, 0.999, 1e-8, 0, 1},
            0,
            0,
            1,
            0};
  std::size_t next = keys_.back().range + sizeof(shared::HubRange);
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const FakeHubKey& key = keys_[k];
    shared::HubRange range{static_cast<std::uint32_t>(k), 0, 0, key.elements, {key.begin, 0, 0}};
    for (unsigned i = key.bytes == key.elements * sizeof(float) ? 1 : 0; i < 1 + states_; ++i) {
      range.arrays[i] = next;
      next += key.elements * sizeof(float);
    }
    std::memcpy(weights_ + key.range, &range, sizeof(range));
  }
}

shared::HubHeader& FakeHub::state() const {
  return *reinterpret_cast<shared::HubHeader*>(weights_ + bytes_);
}

void FakeHub::end(int code, std::uint32_t notice) {
  __atomic_store_n(&state().end_notice, notice, __ATOMIC_RELAXED);
  __atomic_store_n(&state().end_code, code, __ATOMIC_RELEASE);
}

void FakeHub::take_back() {
  __atomic_store_n(&state().readable, 0, __ATOMIC_RELEASE);
  std::memset(weights_, 0, bytes_);
}

float* FakeHub::array(const FakeHubKey& key, unsigned number) const {
  const auto* range = reinterpret_cast<const shared::HubRange*>(weights_ + key.range);
  return reinterpret_cast<float*>(weights_ + range->arrays[number]);
}

void FakeHub::push(const shared::Submission& submission, const std::byte* values) {
  const FakeHubKey& key = keys_.at(submission.push.key);
  if (submission.count != key.elements || submission.dtype != key.dtype) std::abort();
  std::memcpy(weights_ + key.begin, values, key.bytes);
  const std::size_t size = key.bytes / key.elements;
  const unsigned first = size == sizeof(float) ? 1 : 0;
  for (unsigned i = first; i < 1 + states_; ++i) {
    for (std::uint64_t e = 0; e < key.elements; ++e) {
      float& at = array(key, i)[e];
      if (submission.push.kind == static_cast<std::uint8_t>(shared::PushKind::restored)) {
        std::memcpy(
            &at, values + shared::restored_array(key.elements, size, i - first) + e * sizeof(float),
            sizeof(float));
      } else if (i == 0) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, values + e * size, sizeof(bits));
        at = aggregation::bfloat16_to_float32(bits);
      } else {
        at = submission.push.kind == static_cast<std::uint8_t>(shared::PushKind::weights) ? 0
                                                                                          : at + 1;
      }
    }
  }
}

}  // namespace gradcube::trainer
