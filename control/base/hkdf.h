// Hashes and keys, by libcrypto: SHA-256, and keys made of a key by HKDF with it (RFC 5869). Who
// knows one key of these knows neither the first nor the others.
//
// Any thread. Throws a SetupError where libcrypto refuses, as in a policy without SHA-256.
#ifndef GRADCUBE_CONTROL_BASE_HKDF_H_
#define GRADCUBE_CONTROL_BASE_HKDF_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradcube::control {

// Is wiped at its end.
struct Secret : std::array<std::uint8_t, 32> {
  ~Secret();
};

// Tells the keys apart that a cluster has had (dataplane/engine/frame_keys.h). 0: it has none.
using KeyId = std::uint32_t;
std::string key_id_text(KeyId key);  // "0a1b2c3d"

// Wipes what calls that have returned have left on the stack.
[[gnu::noinline]] void wipe_stack();

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

// By HKDF with the salt "gradcube", for one purpose: `label` names it, and `context` what differs
// within it.
Secret derived_secret(const Secret& from, std::string_view label, std::string_view context = {});

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_HKDF_H_
