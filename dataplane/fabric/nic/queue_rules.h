// Flow rules (rte_flow) by which a device brings each frame to the queue that it asks for: its UDP
// source port less 49152, modulo queues.
//
// A rule for each port that frames are sent from: a match of single bits would need fewer, and
// fewer NICs take one. All of them or none: a device that takes too few is left without.
//
// Ownership: the rules are the device's until this ends, which is before the device is stopped.
//
// Threads: the control thread, or whoever starts and stops the device.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_QUEUE_RULES_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_QUEUE_RULES_H_

#include <cstdint>
#include <rte_flow.h>
#include <vector>

namespace gradcube::dataplane {

class QueueRules {
 public:
  // Of a device that has been started, with so many queues to receive from.
  QueueRules(std::uint16_t device, std::uint16_t queues);
  ~QueueRules();
  QueueRules(const QueueRules&) = delete;
  QueueRules& operator=(const QueueRules&) = delete;

  // Whether the device has taken them.
  bool taken() const { return !rules_.empty(); }

 private:
  bool add(std::uint16_t source_port, std::uint16_t queue);
  void remove_all();

  std::uint16_t device_;
  std::vector<rte_flow*> rules_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_QUEUE_RULES_H_
