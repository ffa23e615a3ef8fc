// SHA-256 (FIPS 180-4) of some bytes. Pure function; any thread.
#ifndef GRADCUBE_CONTROL_BASE_SHA256_H_
#define GRADCUBE_CONTROL_BASE_SHA256_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace gradcube::control {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_SHA256_H_
