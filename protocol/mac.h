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
#include <atomic>
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

// The keys of what is of no job. There is one, which MACs are made with; while it is exchanged for
// another there are two, and a frame is right by either.
//
// One thread changes them, while others use them. Both keys outlive all uses: who takes one away
// waits until no thread is still at work with it.
class ServerKeys {
 public:
  explicit ServerKeys(const FrameKey& own) : taken_{&own, nullptr}, own_(&own) {}

  const FrameKey& own() const { return *own_.load(std::memory_order_acquire); }
  bool is_right(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload) const;

  // Takes frames by this key, too; null: only by its own.
  void also_take(const FrameKey* other) {
    taken_[1 - place_].store(other, std::memory_order_release);
  }
  // The other key, which there must be, becomes the own one, and this the other.
  void exchange() {
    place_ = 1 - place_;
    own_.store(taken_[place_].load(std::memory_order_relaxed), std::memory_order_release);
  }

 private:
  std::array<std::atomic<const FrameKey*>, 2> taken_;
  std::atomic<const FrameKey*> own_;  // one of them, so that who makes a MAC reads once
  unsigned place_ = 0;                // of that; of who changes them
};

// What servers tell each other beside the segments of jobs always carries a MAC, where there are
// keys, or else a CRC. check(): none, bad_mac or bad_crc.
void seal(std::span<std::uint8_t> headers, std::span<const std::uint8_t> payload,
          const ServerKeys* keys);
FrameError check(std::span<const std::uint8_t> headers, std::span<const std::uint8_t> payload,
                 const ServerKeys* keys);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_MAC_H_
