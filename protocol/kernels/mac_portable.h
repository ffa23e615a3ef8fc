// GHASH and AES-128 without special instructions: for CPUs that ipsec-mb does not know, and what
// tests compare it with. Slow, and its time depends on the key: use mac_kernels.h.
//
// Pure functions; any thread.
#ifndef GRADCUBE_PROTOCOL_KERNELS_MAC_PORTABLE_H_
#define GRADCUBE_PROTOCOL_KERNELS_MAC_PORTABLE_H_

#include <cstdint>
#include <span>

#include "protocol/kernels/mac_kernels.h"

namespace gradcube::protocol {

// Goes on from `hash` with the bytes, filled up to whole blocks with zeros (NIST SP 800-38D, 6.4).
MacBlock ghash_portable(const MacBlock& key, MacBlock hash, std::span<const std::uint8_t> bytes);

// One block, encrypted (FIPS 197).
MacBlock aes128_portable(const MacBlock& key, MacBlock block);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_KERNELS_MAC_PORTABLE_H_
