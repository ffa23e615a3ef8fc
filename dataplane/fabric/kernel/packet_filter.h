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

// For IPv4 frames. Lets in what may be one of Gradcube's for a port of this MAC: addressed to it or
// to all hosts, without IP options and not a fragment, UDP to Gradcube's port; and of no foreign
// VLAN, if it is to all or the MAC is the interface's. The kernel says of no other frame whether it
// had a tag.
using FrameFilter = std::array<sock_filter, 22>;
FrameFilter frames_of_gradcube(const std::array<std::uint8_t, 6>& mac, bool is_the_interfaces);

// The number whose remainder by the number of queues is the frame's queue: the sender's thread, as
// thread_of() has it. Unlike a filter, the program sees the frame from its IP header on.
PacketProgram thread_of_frame();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_FILTER_H_
