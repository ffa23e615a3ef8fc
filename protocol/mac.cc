#include "protocol/mac.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "protocol/bytes.h"
#include "protocol/crc.h"
#include "protocol/frame_layout.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

namespace {

bool says_authenticated(std::span<const std::uint8_t> headers) {
  return (headers[frame_layout::kHopsAt] & frame_layout::kAuthenticatedBit) != 0;
}

MacBlock half_of(const FrameSecret& secret, std::size_t begin) {
  MacBlock half;
  std::copy_n(secret.begin() + begin, half.size(), half.begin());
  return half;
}

}  // namespace

FrameKey::FrameKey(const FrameSecret& secret) : kernel_(half_of(secret, 0), half_of(secret, 16)) {}

std::uint64_t FrameKey::code_of(std::span<const std::uint8_t> headers,
                                std::span<const std::uint8_t> payload,
                                const MacContext& context) const {
  assert(headers.size() >= header_bytes(FrameType::path_failure, 1, true) &&
         headers.size() <= kMaxHeaderBytes);
  const std::size_t covered = headers.size() - kOuterHeaderBytes - kMacBytes;
  std::array<std::uint8_t, kMaxHeaderBytes> copy;
  std::memcpy(copy.data(), headers.data() + kOuterHeaderBytes, covered);
  constexpr std::size_t kHopByte = frame_layout::kHopsAt - kOuterHeaderBytes;
  copy[kHopByte] = static_cast<std::uint8_t>(copy[kHopByte] & ~frame_layout::kHopIndexMask);
  MacBlock block;
  store_little<std::uint32_t>(&block[0], static_cast<std::uint32_t>(context.sequence >> 32));
  store_little<std::uint32_t>(&block[4], static_cast<std::uint32_t>(context.acknowledged >> 32));
  store_little<std::uint32_t>(&block[8], context.hub);
  store_little<std::uint16_t>(&block[12], static_cast<std::uint16_t>(covered));
  store_little<std::uint16_t>(&block[14], static_cast<std::uint16_t>(payload.size()));
  return kernel_({copy.data(), covered}, payload, block);
}

void FrameKey::seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload,
                    const MacContext& context) const {
  assert(says_authenticated(headers));
  store_little<std::uint64_t>(headers.data() + headers.size() - kMacBytes,
                              code_of(headers, payload, context));
}

bool FrameKey::is_right(std::span<const std::uint8_t> headers,
                        std::span<const std::uint8_t> payload, const MacContext& context) const {
  return says_authenticated(headers) &&
         load_little<std::uint64_t>(headers.data() + headers.size() - kMacBytes) ==
             code_of(headers, payload, context);
}

bool ServerKeys::is_right(std::span<const std::uint8_t> headers,
                          std::span<const std::uint8_t> payload) const {
  return std::any_of(taken_.begin(), taken_.end(), [&](const auto& taken) {
    const FrameKey* key = taken.load(std::memory_order_acquire);
    return key != nullptr && key->is_right(headers, payload);
  });
}

void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload,
          const ServerKeys* keys) {
  if (keys != nullptr) {
    keys->own().seal(headers, payload);
  } else {
    seal(headers, payload);
  }
}

FrameError check(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload,
                 const ServerKeys* keys) {
  if (keys != nullptr) {
    return keys->is_right(headers, payload) ? FrameError::none : FrameError::bad_mac;
  }
  const bool right = !says_authenticated(headers) && crc_is_right(headers, payload);
  return right ? FrameError::none : FrameError::bad_crc;
}

}  // namespace gradcube::protocol
