#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_LINK_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_LINK_H_

#include <cstdint>

namespace gradcube::dataplane {

/// The cable between a server and its switch and the switch's memory behind it.
struct LinkProfile {
  /// Each direction's rate, 1 Mb/s at least; 0: not limited.
  std::uint64_t bits_per_second = 0;
  /// From the end of sending to arrival, in nanoseconds: what a whole way through the switch takes
  /// besides serialisation and queueing.
  std::int64_t delay = 0;
  /// Bytes of frames that an output port holds, the one being sent included; a frame beyond is
  /// dropped. 0: not bounded.
  std::uint64_t queue_bytes = 0;
  /// A frame that raises an output port's bytes above this is marked, when its transport
  /// understands marks. 0: never.
  std::uint64_t mark_bytes = 0;

  bool limited() const { return bits_per_second != 0 || queue_bytes != 0; }
};

/// One direction of a wire: at any time it carries one frame. It knows when it will be free, to a
/// fraction of a nanosecond (64 bytes take 6.7 ns at 100 Gb/s), so that a long run of frames takes
/// exactly as long as its bytes do, whenever somebody looks.
class LinkClock {
 public:
  /// Below it a long frame's time would not fit the arithmetic.
  static constexpr std::uint64_t kMinRate = 1'000'000;

  /// 0 bits per second: frames take no time; otherwise at least kMinRate.
  explicit LinkClock(std::uint64_t bits_per_second)
      : fraction_per_byte_(
            bits_per_second == 0 ? 0 : static_cast<std::uint64_t>(kBitTime / bits_per_second)) {}

  /// Carries a frame that is ready at `ready`; answers when its last bit has left.
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
  /// Nanoseconds that 8 bits take at 1 bit per second, with kFractionBits after the point.
  static constexpr unsigned __int128 kBitTime = static_cast<unsigned __int128>(8'000'000'000)
                                                << kFractionBits;

  std::uint64_t fraction_per_byte_;
  std::int64_t free_at_ = INT64_MIN;
  std::uint64_t fraction_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_LINK_H_
