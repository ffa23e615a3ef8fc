#include "protocol/crc.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "protocol/bytes.h"
#include "protocol/frame_layout.h"
#include "protocol/kernels/crc_kernels.h"
#include "protocol/wire.h"

namespace gradcube::protocol {
namespace {

std::uint32_t field_value(std::uint32_t crc) {
  const std::uint32_t value = ~crc;
  return value == 0 ? 0xffffffffU : value;
}

const CrcFunction update = select_crc();

}  // namespace

std::uint32_t begin_crc(std::span<const std::uint8_t> headers) {
  assert(headers.size() >= link_header_bytes(1, false) && headers.size() <= kMaxHeaderBytes);
  const std::size_t covered = headers.size() - kOuterHeaderBytes - kCrcBytes;
  std::array<std::uint8_t, kMaxHeaderBytes> copy;
  std::memcpy(copy.data(), headers.data() + kOuterHeaderBytes, covered);
  constexpr std::size_t kHopByte = frame_layout::kHopsAt - kOuterHeaderBytes;
  copy[kHopByte] = static_cast<std::uint8_t>(copy[kHopByte] & ~frame_layout::kHopIndexMask);
  return update(0xffffffffU, copy.data(), covered);
}

std::uint32_t extend_crc(std::uint32_t crc, std::span<const std::uint8_t> part) {
  return part.empty() ? crc : update(crc, part.data(), part.size());
}

bool crc_matches(std::span<const std::uint8_t> headers, std::uint32_t crc) {
  return load_little<std::uint32_t>(headers.data() + headers.size() - kCrcBytes) ==
         field_value(crc);
}

void store_crc(std::span<std::uint8_t> headers, std::uint32_t crc) {
  store_little<std::uint32_t>(headers.data() + headers.size() - kCrcBytes, field_value(crc));
}

void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload) {
  store_crc(headers, extend_crc(begin_crc(headers), payload));
}

bool crc_is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload) {
  return crc_matches(headers, extend_crc(begin_crc(headers), payload));
}

}  // namespace gradcube::protocol
