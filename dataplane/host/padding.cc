#include "dataplane/host/padding.h"

#include <array>

namespace gradcube::dataplane {

namespace {

constexpr std::array<std::uint8_t, kMostPadding> kZeros{};

// DPDK counts references to external memory in 16 bits. Here it does not matter when none is left.
rte_mbuf_ext_shared_info& zeros_info() {
  static rte_mbuf_ext_shared_info info = [] {
    rte_mbuf_ext_shared_info made{};
    made.free_cb = [](void*, void*) {};
    rte_mbuf_ext_refcnt_set(&made, 1);
    return made;
  }();
  return info;
}

}  // namespace

std::span<const std::uint8_t> padding_bytes(std::size_t count) {
  return std::span(kZeros).first(count);
}

void append_padding(rte_mbuf& greeting, rte_mbuf& packet, std::size_t count) {
  rte_mbuf_ext_shared_info& info = zeros_info();
  rte_mbuf_ext_refcnt_update(&info, 1);
  // Nobody writes to what is chained (fabric/port.h).
  const auto bytes = static_cast<std::uint16_t>(count);
  rte_pktmbuf_attach_extbuf(&packet, const_cast<std::uint8_t*>(kZeros.data()), RTE_BAD_IOVA, bytes,
                            &info);
  packet.data_off = 0;
  packet.data_len = bytes;
  greeting.next = &packet;
  greeting.nb_segs = 2;
  greeting.pkt_len += bytes;
}

}  // namespace gradcube::dataplane
