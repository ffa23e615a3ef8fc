#include "protocol/crc.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <isa-l/crc.h>

#include "protocol/bytes.h"
#include "protocol/frame_layout.h"
#include "protocol/wire.h"

namespace gradcube::protocol {
namespace {

// What the headers' field has to be.
std::uint32_t crc_of(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload) {
  assert(headers.size() >= header_bytes(FrameType::path_failure, 1) &&
         headers.size() <= kMaxHeaderBytes);
  const std::size_t covered = headers.size() - kOuterHeaderBytes - kCrcBytes;
  std::array<std::uint8_t, kMaxHeaderBytes> copy;
  std::memcpy(copy.data(), headers.data() + kOuterHeaderBytes, covered);
  constexpr std::size_t kHopByte = frame_layout::kHopsAt - kOuterHeaderBytes;
  copy[kHopByte] = static_cast<std::uint8_t>(copy[kHopByte] & ~frame_layout::kHopIndexMask);
  std::uint32_t crc = extend_crc(0xffffffffU, {copy.data(), covered});
  if (!payload.empty()) crc = extend_crc(crc, payload);
  return crc == 0xffffffffU ? crc : ~crc;
}

}  // namespace

std::uint32_t extend_crc(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  // ISA-L's signature lacks a const; it only reads.
  auto* const data = const_cast<unsigned char*>(bytes.data());
  const std::uint32_t updated = crc32_iscsi(data, static_cast<int>(bytes.size()), crc);
#if defined(__x86_64__)
  // ISA-L's AVX-512 form returns with the upper halves of the vector registers in use. This would
  // slow down every SSE instruction of the packet path.
  if (__builtin_cpu_supports("avx")) asm volatile("vzeroupper");
#endif
  return updated;
}

void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload) {
  store_little(headers.data() + headers.size() - kCrcBytes, crc_of(headers, payload));
}

bool crc_is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload) {
  return load_little<std::uint32_t>(headers.data() + headers.size() - kCrcBytes) ==
         crc_of(headers, payload);
}

}  // namespace gradcube::protocol
