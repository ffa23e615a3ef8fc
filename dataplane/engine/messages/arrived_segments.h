// Which segments of the messages under way have arrived in the memory of one trainer: a bit for
// each full segment that its region has room for. So a segment that comes twice, whatever its flow
// and its sequence are, counts once.
//
// A receive has the bits from that of its buffer's begin on. Buffers do not overlap, and a receive
// needs no bit for the last segment of its message, which ends it (mail_channel.h): so no two
// receives share a bit. A trainer whose library lets buffers overlap may wait for ever.
//
// Owned by a Mailroom; touched only by the leader engine's thread. The constructor allocates.
#ifndef GRADCUBE_DATAPLANE_ENGINE_MESSAGES_ARRIVED_SEGMENTS_H_
#define GRADCUBE_DATAPLANE_ENGINE_MESSAGES_ARRIVED_SEGMENTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>

namespace gradcube::dataplane {

class ArrivedSegments {
 public:
  ArrivedSegments(std::uint64_t region_bytes, std::uint32_t segment_bytes)
      : segment_bytes_(segment_bytes),
        // Not touched before a receive begins.
        words_(std::make_unique_for_overwrite<std::uint64_t[]>(
            (region_bytes / segment_bytes + kBits) / kBits)) {}

  // The bits of a buffer that begins here, none of which is set. place: in the region.
  std::uint64_t begin(std::uint64_t place, std::uint64_t bytes) {
    const std::uint64_t first = place / segment_bytes_;
    const std::uint64_t end = first + bytes / segment_bytes_;
    for (std::uint64_t bit = first; bit < end;) {
      const std::uint64_t next = std::min(end, (bit / kBits + 1) * kBits);
      words_[bit / kBits] &= ~(ones(next - bit) << bit % kBits);
      bit = next;
    }
    return first;
  }
  bool has(std::uint64_t bit) const { return (words_[bit / kBits] >> bit % kBits & 1) != 0; }
  void add(std::uint64_t bit) { words_[bit / kBits] |= std::uint64_t{1} << bit % kBits; }

 private:
  static constexpr std::uint64_t kBits = 64;
  static constexpr std::uint64_t ones(std::uint64_t count) {
    return count == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  }

  std::uint64_t segment_bytes_;
  std::unique_ptr<std::uint64_t[]> words_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_MESSAGES_ARRIVED_SEGMENTS_H_
