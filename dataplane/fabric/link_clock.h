// How long a wire of some rate takes for its frames.
//
// Plain values; one thread each.
#ifndef GRADCUBE_DATAPLANE_FABRIC_LINK_CLOCK_H_
#define GRADCUBE_DATAPLANE_FABRIC_LINK_CLOCK_H_

#include <cassert>
#include <cstdint>

namespace gradcube::dataplane {

// One direction of a wire, which carries one frame at a time. It computes when it will be free, to
// a fraction of a nanosecond (64 bytes take 6.7 ns at 100 Gb/s). So a long run of frames takes
// exactly as long as its bytes, however rarely it is polled.
class LinkClock {
 public:
  // Below this rate the time of a long frame would overflow.
  static constexpr std::uint64_t kMinRate = 1'000'000;

  // 0 bits per second: frames take no time. Otherwise at least kMinRate.
  explicit LinkClock(std::uint64_t bits_per_second)
      : fraction_per_byte_(
            bits_per_second == 0 ? 0 : static_cast<std::uint64_t>(kBitTime / bits_per_second)) {
    assert(bits_per_second == 0 || bits_per_second >= kMinRate);
  }

  // How long it is still busy with what it carries; 0 if it is free.
  std::int64_t busy_for(std::int64_t now) const { return free_at_ > now ? free_at_ - now : 0; }

  // Carries a frame that is ready at `ready`. Returns when its last bit has left.
  std::int64_t carry(std::int64_t ready, std::uint32_t wire_bytes) {
    if (ready > free_at_) {
      free_at_ = ready;
      fraction_ = 0;
    }
    const std::uint64_t time = fraction_ + wire_bytes * fraction_per_byte_;
    free_at_ += static_cast<std::int64_t>(time >> kFractionBits);
    fraction_ = time & kFractionMask;
    return free_at_;
  }

 private:
  static constexpr int kFractionBits = 32;
  static constexpr std::uint64_t kFractionMask = (std::uint64_t{1} << kFractionBits) - 1;
  // Nanoseconds that 8 bits take at 1 bit per second, with kFractionBits after the point.
  static constexpr unsigned __int128 kBitTime = static_cast<unsigned __int128>(8'000'000'000)
                                                << kFractionBits;

  std::uint64_t fraction_per_byte_;
  std::int64_t free_at_ = INT64_MIN;
  std::uint64_t fraction_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_LINK_CLOCK_H_
