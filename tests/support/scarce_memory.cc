#include "tests/support/scarce_memory.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace gradcube::trainer {
namespace {

thread_local const std::function<bool()>* no_memory_since = nullptr;

// What is asked may need memory, too.
bool is_there_none() {
  const auto* const since = std::exchange(no_memory_since, nullptr);
  const bool is_there_none = since != nullptr && (*since)();
  no_memory_since = since;
  return is_there_none;
}

// Null if there is no memory.
void* try_to_allocate(std::size_t bytes) noexcept {
  return is_there_none() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void* allocate_or_throw(std::size_t bytes) {
  void* const memory = try_to_allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

NoMemory::NoMemory(std::function<bool()> since) : since_(std::move(since)) {
  no_memory_since = &since_;
}
NoMemory::~NoMemory() { no_memory_since = nullptr; }

}  // namespace gradcube::trainer

void* operator new(std::size_t bytes) { return gradcube::trainer::allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return gradcube::trainer::allocate_or_throw(bytes); }
// What std::stable_sort asks for, and gives back through the operators below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return gradcube::trainer::try_to_allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return gradcube::trainer::try_to_allocate(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
