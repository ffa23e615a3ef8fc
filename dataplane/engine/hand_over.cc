#include "dataplane/engine/hand_over.h"

#include <utility>

namespace gradcube::dataplane {

HandOver::HandOver(std::vector<Doorbell*> doorbells, std::uint32_t depth)
    : doorbells_(std::move(doorbells)), ways_(doorbells_.size()) {
  for (unsigned from = 0; from < engines(); ++from) {
    for (unsigned to = 0; to < engines(); ++to) {
      ways_[from].push_back(from == to ? nullptr : std::make_unique<Way>(depth));
    }
  }
}

HandOver::~HandOver() { discard(); }

HandOver::Flushed HandOver::flush(unsigned from) {
  Flushed flushed;
  for (unsigned to = 0; to < engines(); ++to) {
    if (to == from || ways_[from][to]->count == 0) continue;
    Way& way = *ways_[from][to];
    const auto count = static_cast<std::uint16_t>(std::exchange(way.count, 0));
    const std::uint16_t passed = way.ring.put(way.gathered.data(), count);
    rte_pktmbuf_free_bulk(way.gathered.data() + passed, count - passed);
    flushed.passed += passed;
    flushed.dropped += count - passed;
    doorbells_[to]->ring();
  }
  return flushed;
}

void HandOver::discard() {
  rte_mbuf* frame = nullptr;
  for (const auto& of_one : ways_) {
    for (const auto& way : of_one) {
      if (way == nullptr) continue;
      while (way->ring.take(&frame, 1) == 1) rte_pktmbuf_free(frame);
      rte_pktmbuf_free_bulk(way->gathered.data(), std::exchange(way->count, 0));
    }
  }
}

}  // namespace gradcube::dataplane
