#include "tests/unit/control/counted_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace gradcube::control {
namespace {

std::atomic<std::uint64_t> asked_for = 0;

void* count_and_allocate(std::size_t bytes) {
  asked_for += bytes;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::uint64_t bytes_asked_for() { return asked_for; }

}  // namespace gradcube::control

void* operator new(std::size_t bytes) { return gradcube::control::count_and_allocate(bytes); }
void* operator new[](std::size_t bytes) { return gradcube::control::count_and_allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
