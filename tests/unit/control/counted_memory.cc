#include "tests/unit/control/counted_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace gradcube::control {
namespace {

std::atomic<std::uint64_t> asked_for = 0;

// Null if there is no memory.
void* count_and_try(std::size_t bytes) noexcept {
  asked_for += bytes;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* count_and_allocate(std::size_t bytes) {
  void* const memory = count_and_try(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::uint64_t bytes_asked_for() { return asked_for; }

}  // namespace gradcube::control

void* operator new(std::size_t bytes) { return gradcube::control::count_and_allocate(bytes); }
void* operator new[](std::size_t bytes) { return gradcube::control::count_and_allocate(bytes); }
// What std::stable_sort asks for, and gives back through the operators below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return gradcube::control::count_and_try(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return gradcube::control::count_and_try(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
