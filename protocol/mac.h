// The MAC of a frame: only who has the key can make it, and it fits one place alone.
//
// It stands where the CRC stands otherwise (crc.h) and covers the same: the Gradcube part of the
// headers up to the MAC field, with the current hop's three bits as 0; then the payload. Beside
// these it covers what both ends know and the frame does not say: MacContext. So a frame that comes
// again after its sequence has wrapped around, or for a later hub in its lane, is wrong. Relays and
// switches change nothing that it covers, and check nothing.
//
// Keys are for one purpose each: those of a job and epoch for its segments, acknowledgements and
// probes, that of the cluster for all that its servers tell each other beside
// (control/settings/cluster_key.h).
//
// `headers` is as crc.h says, of a frame whose routing header says that it is authenticated.
#ifndef GRADCUBE_PROTOCOL_MAC_H_
#define GRADCUBE_PROTOCOL_MAC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/frame_error.h"
#include "protocol/kernels/mac_kernels.h"

namespace gradcube::protocol {

struct MacContext {
  std::uint64_t sequence = 0;      // of the frame, of which it has the low half
  std::uint64_t acknowledged = 0;  // the same
  std::uint32_t hub = 0;           // its number among those of the job; 0: of none
};

using FrameSecret = std::array<std::uint8_t, 32>;

// Some 1.5 KB, and the tables that a MAC needs. Immutable; any thread.
class FrameKey {
 public:
  explicit FrameKey(const FrameSecret& secret);

  // Computes the MAC and stores it in the headers.
  void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload,
            const MacContext& context = {}) const;
  // Whether the frame carries a MAC and it is the right one.
  bool is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload,
                const MacContext& context = {}) const;

 private:
  std::uint64_t code_of(std::span<const std::uint8_t> headers,
                        std::span<const std::uint8_t> payload, const MacContext& context) const;

  MacKernel kernel_;
};

// What servers tell each other beside the segments of jobs always carries a MAC, where there is a
// key, or else a CRC. check(): none, bad_mac or bad_crc.
void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload,
          const FrameKey* key);
FrameError check(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload,
                 const FrameKey* key);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_MAC_H_
