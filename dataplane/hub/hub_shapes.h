// How the chunks of one length are exchanged at one server, and where their state lies. A hub has
// many chunks and few lengths: 32 KiB, and what is left at the ends of keys.
//
// Places count from a chunk's own first one in the arrays of HubExchange, which alone uses them. A
// position counts over all rounds of a ring.
#ifndef GRADCUBE_DATAPLANE_HUB_HUB_SHAPES_H_
#define GRADCUBE_DATAPLANE_HUB_HUB_SHAPES_H_

#include <array>
#include <cstdint>

#include "control/plan/collective_layout.h"
#include "control/plan/thread_schedule.h"

namespace gradcube::dataplane {

// What a thread has of a chunk: all of it.
inline constexpr control::PartRange kWholeChunk{0, 1, 1};

struct HubShape {
  // A position has 16 bits in a frame.
  static constexpr std::uint32_t kMostPositions = 1 << 16;

  // bytes: of the chunk. What has a root and what has rings are shapes like others. Throws a
  // control::UsageError where a stream would have more positions.
  HubShape(const control::ThreadSchedule& schedule, std::uint64_t chunk_bytes,
           std::uint32_t segment_bytes, std::uint32_t block_bytes);

  // Where it is known whether a segment of the receive stream has been added up.
  std::uint64_t reduced_bit(unsigned w, std::uint32_t position) const {
    return reduced_at[w] + position;
  }
  // The same of the contribution by the source with this place among those of the step.
  std::uint64_t arrived_bit(unsigned w, unsigned place, std::uint32_t position) const {
    return arrived_at[w] + std::uint64_t{place} * length[w] + position;
  }
  std::uint64_t result_bit(unsigned w, unsigned place, std::uint32_t position) const {
    return results_at[w] + std::uint64_t{place} * length[w] + position;
  }
  // Where it is known in which slot a contribution was landed.
  std::uint64_t landing_place(unsigned w, unsigned place, std::uint32_t position) const {
    return landing_at[w] + std::uint64_t{place} * length[w] + position;
  }

  std::uint64_t bytes;
  control::CollectiveLayout layout;
  std::array<std::uint32_t, control::kMaxSteps> length{};  // of a step's streams
  // Of the contributions to a step: how many can be landed at a time, the bytes of the longest one,
  // and which of the exchange's pools has slots for them.
  std::array<std::uint32_t, control::kMaxSteps> landings{};
  std::array<std::uint32_t, control::kMaxSteps> slot{};
  std::array<std::uint32_t, control::kMaxSteps> pool{};
  std::array<std::uint64_t, control::kMaxSteps> reduced_at{};
  std::array<std::uint64_t, control::kMaxSteps> arrived_at{};
  std::uint64_t gathering_bits = 0;  // the two above
  std::array<std::uint64_t, control::kMaxSteps> results_at{};
  std::uint64_t bits = 0;  // all
  std::array<std::uint64_t, control::kMaxSteps> counts_at{};
  std::uint64_t counts = 0;
  std::array<std::uint64_t, control::kMaxSteps> landing_at{};
  std::uint64_t landing_places = 0;
  std::uint32_t reductions = 0;  // that a round has here
  std::uint32_t results = 0;     // that arrive here in a round
  control::ByteRange owned;      // whose weights this server steps
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUB_SHAPES_H_
