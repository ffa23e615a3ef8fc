// How many bytes this process has asked operator new for, so far: counted_memory.cc replaces it.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_COUNTED_MEMORY_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_COUNTED_MEMORY_H_

#include <cstdint>

namespace gradcube::control {

std::uint64_t bytes_asked_for();

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_COUNTED_MEMORY_H_
