// Little-endian integers in bytes that need no alignment, as files have them. Pure; any thread.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_LITTLE_ENDIAN_H_
#define GRADCUBE_CONTROL_CHECKPOINT_LITTLE_ENDIAN_H_

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace gradcube::control {

// sizeof(T) bytes at `from`. Compilers make one move of it.
template <std::unsigned_integral T>
constexpr T load_little(const std::uint8_t* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
  return value;
}

template <std::unsigned_integral T>
constexpr void store_little(std::uint8_t* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_LITTLE_ENDIAN_H_
