// A packet socket of the kernel on one network interface, with the two rings of slots that the
// process shares with it: received frames lie in one, frames to send in the other.
//
// A socket is made deaf: it sees no frame until listen(). When its interface is deleted it is deaf
// again, until it moves to another one; the rings stay.
//
// Owns the descriptor and the mapping. Who uses the slots: receive_ring.h, transmit_ring.h.
//
// Threads: one makes and moves it and takes its drops; any asks for the descriptor and the slots,
// and uses the rings meanwhile.
//
// Errors: control::SetupError.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_SOCKET_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_SOCKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/fabric/kernel/network_interface.h"
#include "dataplane/fabric/kernel/packet_filter.h"

namespace gradcube::dataplane {

struct PacketRingSizes {
  std::uint32_t mtu = 1500;            // of the largest frame that a slot holds
  std::uint32_t receive_slots = 1024;  // the rings have at least so many
  std::uint32_t transmit_slots = 256;
};

class PacketSocket {
 public:
  using Slots = std::vector<std::byte*>;

  // On an interface that is up. The process needs CAP_NET_RAW in the interface's network namespace.
  PacketSocket(const NetworkInterface& interface, const PacketRingSizes& sizes);
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  // From now on it gets the queue's frames of Gradcube for this MAC, which need not be the
  // interface's own: as long as the socket lives, the interface takes frames for both.
  void listen(const std::array<std::uint8_t, 6>& mac, QueueOfPort queue);

  // Whether it is on an interface: not, when that was deleted or has left the network namespace.
  bool is_on_interface() const;
  // To one that is up, where it is deaf.
  void move_to(const NetworkInterface& interface);

  int descriptor() const { return descriptor_; }
  const Slots& receive_slots() const { return receive_slots_; }
  const Slots& transmit_slots() const { return transmit_slots_; }

  // Frames that found no free slot since the last call.
  std::uint32_t take_drops();

 private:
  template <typename Value>
  void set(int option, const Value& value, const std::string& purpose);
  void attach(int level, int option, PacketProgram program, const std::string& purpose);
  void make_rings(const PacketRingSizes& sizes);
  void release();
  // With errno.
  [[noreturn]] void fail(const std::string& purpose) const;

  std::string interface_;  // its name, for messages
  int index_ = 0;
  std::array<std::uint8_t, 6> mac_{};
  int descriptor_ = -1;
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  Slots receive_slots_;
  Slots transmit_slots_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_SOCKET_H_
