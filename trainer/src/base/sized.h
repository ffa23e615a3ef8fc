// Reads a struct of the C ABI that begins with its own size, as the caller's header knows it.
//
// The caller may have been compiled with an older header or a newer one. Of an older, shorter
// struct the missing fields have their defaults. A newer, longer one is understood if it asks for
// nothing that this library does not know: if all bytes behind the known ones are zero.
#ifndef GRADCUBE_TRAINER_SRC_BASE_SIZED_H_
#define GRADCUBE_TRAINER_SRC_BASE_SIZED_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

namespace gradcube::trainer {

inline constexpr std::size_t kLargestStruct = 4096;

// Puts `given` over `value`, which holds the defaults. `first_size` is the struct's size in the
// first version that had it, `name` its name and `initialiser` its macro, for the message. Returns
// what is wrong; empty if nothing is.
template <typename T>
std::string read_sized(const T* given, std::size_t first_size, const char* name,
                       const char* initialiser, T& value) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  const std::size_t size = given->size;
  // No version will have so large a struct: the size is not one, and is not read up to.
  if (size < first_size || size > kLargestStruct) {
    return std::string("invalid size ") + std::to_string(size) + " of a " + name + ": expected " +
           std::to_string(first_size) + " to " + std::to_string(kLargestStruct) + ": begin with " +
           initialiser;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(T) &&
      !std::all_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte == 0; })) {
    return std::string("this library knows ") + std::to_string(sizeof(T)) + " bytes of a " + name +
           ", and one of " + std::to_string(size) +
           " asks for more: use a library as new as the header";
  }
  std::memcpy(&value, given, std::min(size, sizeof(T)));
  value.size = sizeof(T);
  return "";
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_SIZED_H_
