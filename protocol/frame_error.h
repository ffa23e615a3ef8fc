// Why a received frame was dropped as malformed: what can be seen without knowing the cluster. What
// only the cluster's knowledge shows (job, epoch, neighbour, ...) the engine counts by reasons of
// its own.
#ifndef GRADCUBE_PROTOCOL_FRAME_ERROR_H_
#define GRADCUBE_PROTOCOL_FRAME_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradcube::protocol {

enum class FrameError : std::uint8_t {
  none,
  // What parse_frame() finds.
  too_short,   // the frame, or its contiguous first part, ends inside the headers
  bad_length,  // the lengths of IPv4, UDP and the segment do not agree with each other or with the
               // frame
  not_gradcube,  // another ethertype, IP version or options, protocol or UDP port: foreign traffic
  fragmented,    // a fragment of an IPv4 packet; Gradcube's are sent with DF
  bad_checksum,  // the IPv4 header checksum is wrong, or UDP's, which is always sent as 0, is not 0
  bad_version,   // another version of this protocol
  bad_type,      // not a segment, an acknowledgement or a probe
  bad_hops,      // no hop, more than kMaxHops, or the current hop is not one of them
  bad_address,   // the source is the destination
  bad_flow,      // the thread in the flow is not the one in the UDP source port
  // What the engine adds, on a port whose medium can damage a frame.
  bad_crc,  // crc_is_right() said no
};

inline constexpr std::size_t kFrameErrorCount = static_cast<std::size_t>(FrameError::bad_crc) + 1;

// The enumerator's own name, for counters and messages; "unknown" for a value that is none of them.
std::string_view name(FrameError error);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_FRAME_ERROR_H_
