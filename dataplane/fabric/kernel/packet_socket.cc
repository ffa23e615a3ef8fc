#include "dataplane/fabric/kernel/packet_socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

// What the kernel allocates in one piece. A slot lies within one.
constexpr std::uint32_t kBlockBytes = 64 * 1024;

// A ring of at least so many slots, each for a header of the kernel's and a frame whose IP packet
// begins at a multiple of TPACKET_ALIGNMENT.
tpacket_req ring_of(std::uint32_t slots, std::uint32_t mtu) {
  constexpr std::uint32_t kLongestLinkHeader = 16;
  const auto page = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
  tpacket_req ring{};
  ring.tp_frame_size = TPACKET_ALIGN(TPACKET_ALIGN(TPACKET2_HDRLEN + kLongestLinkHeader) + mtu);
  ring.tp_block_size = std::max(kBlockBytes, (ring.tp_frame_size + page - 1) / page * page);
  const std::uint32_t in_a_block = ring.tp_block_size / ring.tp_frame_size;
  ring.tp_block_nr = (std::max(slots, 1U) + in_a_block - 1) / in_a_block;
  ring.tp_frame_nr = ring.tp_block_nr * in_a_block;
  return ring;
}

std::size_t bytes_of(const tpacket_req& ring) {
  return std::size_t{ring.tp_block_nr} * ring.tp_block_size;
}

PacketSocket::Slots slots_of(const tpacket_req& ring, std::byte* base) {
  PacketSocket::Slots slots;
  const std::uint32_t in_a_block = ring.tp_block_size / ring.tp_frame_size;
  for (std::uint32_t i = 0; i < ring.tp_frame_nr; ++i) {
    slots.push_back(base + std::size_t{i / in_a_block} * ring.tp_block_size +
                    std::size_t{i % in_a_block} * ring.tp_frame_size);
  }
  return slots;
}

}  // namespace

PacketSocket::PacketSocket(const NetworkInterface& interface, const PacketRingSizes& sizes)
    : interface_(interface.name) {
  // Without a protocol it is bound to nothing.
  descriptor_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0 && errno == EPERM) {
    throw control::SetupError(fmt::format(
        "this process may not open network interface {}: it needs CAP_NET_RAW (run it as root, or "
        "`setcap cap_net_raw+ep` its program)",
        interface_));
  }
  if (descriptor_ < 0) fail("open a packet socket");
  try {
    make_rings(sizes);
    move_to(interface);
  } catch (...) {
    release();
    throw;
  }
}

PacketSocket::~PacketSocket() { release(); }

void PacketSocket::release() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
  close(descriptor_);
}

void PacketSocket::make_rings(const PacketRingSizes& sizes) {
  const tpacket_req receive = ring_of(sizes.receive_slots, sizes.mtu);
  const tpacket_req transmit = ring_of(sizes.transmit_slots, sizes.mtu);
  mapped_bytes_ = bytes_of(receive) + bytes_of(transmit);
  const std::string purpose =
      fmt::format("make rings of {} and {} slots ({} KiB; smaller ones take less memory)",
                  receive.tp_frame_nr, transmit.tp_frame_nr, mapped_bytes_ / 1024);
  set(PACKET_VERSION, int{TPACKET_V2}, purpose);
  set(PACKET_RX_RING, receive, purpose);
  set(PACKET_TX_RING, transmit, purpose);
  // The kernel maps the ring of received frames first.
  void* mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       descriptor_, 0);
  if (mapping == MAP_FAILED) fail(purpose);
  mapping_ = mapping;
  auto* base = static_cast<std::byte*>(mapping);
  receive_slots_ = slots_of(receive, base);
  transmit_slots_ = slots_of(transmit, base + bytes_of(receive));
}

// To IPv4 alone: a socket of one protocol sees no frame that this host sends. (To ignore outgoing
// frames is an option for sockets of all protocols.)
void PacketSocket::move_to(const NetworkInterface& interface) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_IP);
  address.sll_ifindex = interface.index;
  attach(SOL_SOCKET, SO_ATTACH_FILTER, no_frames(), "filter frames");
  if (bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("bind a packet socket");
  }
  index_ = interface.index;
  mac_ = interface.mac;
}

bool PacketSocket::is_on_interface() const {
  // An error that the kernel keeps for the socket would wake who sleeps on it again and again.
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &bytes);
  sockaddr_ll address{};
  bytes = sizeof address;
  return getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &bytes) == 0 &&
         address.sll_ifindex == index_;
}

void PacketSocket::listen(const std::array<std::uint8_t, 6>& mac, QueueOfPort queue) {
  packet_mreq membership{};
  membership.mr_ifindex = index_;
  membership.mr_type = PACKET_MR_UNICAST;
  membership.mr_alen = static_cast<unsigned short>(mac.size());
  std::copy(mac.begin(), mac.end(), std::begin(membership.mr_address));
  set(PACKET_ADD_MEMBERSHIP, membership, "listen to another MAC address");
  attach(SOL_SOCKET, SO_ATTACH_FILTER, frames_of_gradcube(mac, mac == mac_, queue),
         "filter frames");
}

std::uint32_t PacketSocket::take_drops() {
  tpacket_stats numbers{};
  socklen_t bytes = sizeof numbers;
  getsockopt(descriptor_, SOL_PACKET, PACKET_STATISTICS, &numbers, &bytes);
  return numbers.tp_drops;
}

template <typename Value>
void PacketSocket::set(int option, const Value& value, const std::string& purpose) {
  if (setsockopt(descriptor_, SOL_PACKET, option, &value, sizeof value) != 0) fail(purpose);
}

void PacketSocket::attach(int level, int option, PacketProgram program,
                          const std::string& purpose) {
  const sock_fprog given{static_cast<unsigned short>(program.size()),
                         const_cast<sock_filter*>(program.data())};
  if (setsockopt(descriptor_, level, option, &given, sizeof given) != 0) fail(purpose);
}

void PacketSocket::fail(const std::string& purpose) const {
  throw control::SetupError(fmt::format("cannot {} on network interface {}: {}", purpose,
                                        interface_, std::strerror(errno)));
}

}  // namespace gradcube::dataplane
