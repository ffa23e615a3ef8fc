// Slots for contributions that wait for others: a stack of those that are free, so that the one
// that was used last is used next.
//
// One thread. Nothing allocates but the constructor.
#ifndef GRADCUBE_DATAPLANE_HUB_LANDING_SLOTS_H_
#define GRADCUBE_DATAPLANE_HUB_LANDING_SLOTS_H_

#include <cstdint>
#include <vector>

#include "dataplane/hub/huge_array.h"

namespace gradcube::dataplane {

class LandingSlots {
 public:
  LandingSlots(std::uint32_t slot_bytes, std::uint32_t slots)
      : slot_bytes_(slot_bytes), memory_(std::size_t{slot_bytes} * slots) {
    free_.reserve(slots);
    while (slots > 0) free_.push_back(--slots);
  }

  // There is a free one.
  std::uint32_t take() {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::uint32_t slot) { free_.push_back(slot); }
  std::uint8_t* at(std::uint32_t slot) { return memory_.data() + std::size_t{slot} * slot_bytes_; }
  const std::uint8_t* at(std::uint32_t slot) const {
    return memory_.data() + std::size_t{slot} * slot_bytes_;
  }

  std::uint64_t bytes() const { return memory_.size() + free_.capacity() * sizeof(std::uint32_t); }

 private:
  std::uint32_t slot_bytes_;
  HugeArray<std::uint8_t> memory_;
  std::vector<std::uint32_t> free_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_LANDING_SLOTS_H_
