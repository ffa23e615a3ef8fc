#include "tests/unit/trainer/scarce_memory.h"

#include <cstdlib>
#include <new>

namespace gradcube::trainer {
namespace {

thread_local bool is_there_none = false;

// Null if there is no memory.
void* try_to_allocate(std::size_t bytes) noexcept {
  return is_there_none ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void* allocate_or_throw(std::size_t bytes) {
  void* const memory = try_to_allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

NoMemory::NoMemory() { is_there_none = true; }
NoMemory::~NoMemory() { is_there_none = false; }

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
