// What fills a greeting up to the length of the longest frame: zeros that all packets share, so
// that none is copied.
//
// Any thread.
#ifndef GRADCUBE_DATAPLANE_HOST_PADDING_H_
#define GRADCUBE_DATAPLANE_HOST_PADDING_H_

#include <cstddef>
#include <cstdint>
#include <rte_mbuf.h>
#include <span>

namespace gradcube::dataplane {

// At most kMostPadding: more than any frame has.
inline constexpr std::size_t kMostPadding = 9216;
std::span<const std::uint8_t> padding_bytes(std::size_t count);

// Chains the zeros to a greeting's headers by `packet`, a fresh mbuf, which then belongs to the
// greeting.
void append_padding(rte_mbuf& greeting, rte_mbuf& packet, std::size_t count);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_PADDING_H_
