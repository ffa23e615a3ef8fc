// Unaligned loads and stores of the wire's integers: little-endian for Gradcube's own fields,
// big-endian (network order) for those of Ethernet, IPv4 and UDP. Each compiles to one move, with a
// byte swap if the host's order differs.
#ifndef GRADCUBE_PROTOCOL_BYTES_H_
#define GRADCUBE_PROTOCOL_BYTES_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace gradcube::protocol {

template <std::unsigned_integral T>
constexpr T swap_bytes(T value) {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  return value;
}

template <std::unsigned_integral T>
T load_native(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <std::unsigned_integral T>
void store_native(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
T load_little(const std::uint8_t* from) {
  const T value = load_native<T>(from);
  return std::endian::native == std::endian::little ? value : swap_bytes(value);
}

template <std::unsigned_integral T>
void store_little(std::uint8_t* to, T value) {
  store_native<T>(to, std::endian::native == std::endian::little ? value : swap_bytes(value));
}

template <std::unsigned_integral T>
T load_network(const std::uint8_t* from) {
  const T value = load_native<T>(from);
  return std::endian::native == std::endian::big ? value : swap_bytes(value);
}

template <std::unsigned_integral T>
void store_network(std::uint8_t* to, T value) {
  store_native<T>(to, std::endian::native == std::endian::big ? value : swap_bytes(value));
}

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_BYTES_H_
