// Why a received frame was dropped as malformed. These errors can be found without knowing the
// cluster. The engine has its own reasons for errors in job, epoch, neighbour and so on
// (dataplane/engine/flows/engine_counters.h).
#ifndef GRADCUBE_PROTOCOL_FRAME_ERROR_H_
#define GRADCUBE_PROTOCOL_FRAME_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradcube::protocol {

enum class FrameError : std::uint8_t {
  none,
  // Found by parse_frame():
  too_short,  // the frame, or its contiguous first part, ends inside the headers
  // The lengths of IPv4, UDP and segment or message contradict each other or the frame.
  bad_length,
  not_gradcube,  // foreign traffic: another ethertype, IP version, protocol, UDP port; IP options
  fragmented,    // a fragment of an IPv4 packet; Gradcube sends with DF
  bad_checksum,  // the IPv4 header checksum is wrong, or the UDP checksum is not 0
  bad_version,   // another version of this protocol
  bad_type,      // a type that this version does not number
  // Found by the receiver: a type that it does not use. A message in an engine whose server takes
  // none, anything else in read_message_frame().
  unsupported_type,
  bad_hops,     // no hop, more than kMaxHops, or a current hop beyond the last
  bad_address,  // the source is the destination
  // Found by the engine, on a port whose medium can damage a frame, and by read_message_frame():
  bad_crc,  // crc_is_right() returned false
  // Found by the same, in a cluster with a key: it was not made with it, or not for what it is
  // taken for (mac.h).
  bad_mac,
};

inline constexpr std::size_t kFrameErrorCount = static_cast<std::size_t>(FrameError::bad_mac) + 1;

// The enumerator's name, for counters and messages; "unknown" for any other value.
std::string_view name(FrameError error);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_FRAME_ERROR_H_
