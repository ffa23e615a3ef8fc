// What the kernel asks about a frame before it gives it to a packet socket: programs of classic
// BPF, which the kernel checks and runs itself.
//
// Plain values; any thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_FILTER_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_FILTER_H_

#include <array>
#include <cstdint>
#include <linux/filter.h>
#include <span>

namespace gradcube::dataplane {

using PacketProgram = std::span<const sock_filter>;

// Lets no frame in.
PacketProgram no_frames();

// One of a port's queues: that of the frames whose thread, as thread_of() has it, has this
// remainder by the number of queues.
struct QueueOfPort {
  std::uint16_t number = 0;
  std::uint16_t queues = 1;
};

// For IPv4 frames. Lets in what may be one of Gradcube's for this queue of a port of this MAC:
// addressed to it or to all hosts, without IP options and not a fragment, UDP to Gradcube's port;
// and of no foreign VLAN, if it is to all or the MAC is the interface's. The kernel says of no
// other frame whether it had a tag.
using FrameFilter = std::array<sock_filter, 27>;
FrameFilter frames_of_gradcube(const std::array<std::uint8_t, 6>& mac, bool is_the_interfaces,
                               QueueOfPort queue);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_FILTER_H_
