#include "dataplane/engine/message_inbox.h"

namespace gradcube::dataplane {

bool MessageInbox::put(rte_mbuf* frame) {
  if (!ring_.put_among_others(frame)) return false;
  if (!rung_.exchange(true, std::memory_order_acq_rel)) eventfd_write(descriptor_.get(), 1);
  return true;
}

rte_mbuf* MessageInbox::take() {
  rte_mbuf* frame = nullptr;
  if (ring_.take(&frame, 1) == 1) return frame;
  if (!rung_.load(std::memory_order_relaxed)) return nullptr;
  // Who has rung may not have written yet: then that will be read. What is put in once this no
  // longer counts as rung rings again; what was put in before is seen by the second look.
  eventfd_t rung = 0;
  if (eventfd_read(descriptor_.get(), &rung) == 0) rung_.exchange(false, std::memory_order_acq_rel);
  if (ring_.take(&frame, 1) == 0) return nullptr;
  // Others may wait behind it, and the caller may stop here.
  if (!rung_.exchange(true, std::memory_order_acq_rel)) eventfd_write(descriptor_.get(), 1);
  return frame;
}

}  // namespace gradcube::dataplane
