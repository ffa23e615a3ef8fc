#include "dataplane/engine/message_inbox.h"

#include <bit>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <stdexcept>
#include <string>

namespace gradcube::dataplane {

// In memory of its own: a ring with a name would take one of DPDK's memory zones.
MessageInbox::MessageInbox() {
  const auto bytes = static_cast<std::size_t>(rte_ring_get_memsize(std::bit_ceil(kCapacity + 1)));
  ring_.reset(static_cast<rte_ring*>(rte_zmalloc("message_inbox", bytes, RTE_CACHE_LINE_SIZE)));
  if (ring_ == nullptr) {
    throw std::runtime_error("no memory for the messages of other servers: give DPDK more memory");
  }
  const int failed =
      rte_ring_init(ring_.get(), "messages", kCapacity, RING_F_SC_DEQ | RING_F_EXACT_SZ);
  if (failed != 0) {
    throw std::runtime_error(std::string("cannot make a ring for messages: ") +
                             rte_strerror(-failed));
  }
}

MessageInbox::~MessageInbox() {
  while (rte_mbuf* frame = take()) rte_pktmbuf_free(frame);
}

void MessageInbox::Free::operator()(rte_ring* ring) const { rte_free(ring); }

bool MessageInbox::put(rte_mbuf* frame) {
  if (rte_ring_mp_enqueue(ring_.get(), frame) != 0) return false;
  if (!rung_.exchange(true, std::memory_order_acq_rel)) eventfd_write(descriptor_.get(), 1);
  return true;
}

rte_mbuf* MessageInbox::take() {
  void* frame = nullptr;
  if (rte_ring_sc_dequeue(ring_.get(), &frame) == 0) return static_cast<rte_mbuf*>(frame);
  if (!rung_.load(std::memory_order_relaxed)) return nullptr;
  // Who has rung may not have written yet: then that will be read. What is put in once this no
  // longer counts as rung rings again; what was put in before is seen by the second look.
  eventfd_t rung = 0;
  if (eventfd_read(descriptor_.get(), &rung) == 0) rung_.exchange(false, std::memory_order_acq_rel);
  if (rte_ring_sc_dequeue(ring_.get(), &frame) != 0) return nullptr;
  // Others may wait behind it, and the caller may stop here.
  if (!rung_.exchange(true, std::memory_order_acq_rel)) eventfd_write(descriptor_.get(), 1);
  return static_cast<rte_mbuf*>(frame);
}

}  // namespace gradcube::dataplane
