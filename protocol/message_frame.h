// Messages between daemons on the wire: how one is cut into frames, and how such a frame is read.
//
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | message 20 | CRC 4 or MAC 8
//   | fragment
//
// A message has at most kMaxMessageBytes; what they mean is its sender's and receiver's business.
// It travels in up to 255 fragments, each in a frame of its own, which names the sender's
// incarnation, the message's number and the fragment's place in it. A MessageAssembler
// (message_assembler.h) puts them together again.
//
// Every frame carries its CRC or MAC and is refused without it, whatever the port: messages are
// rare, and a wrong one does more harm than a wrong number in a gradient.
//
// No call here allocates or blocks. Any thread may call anything.
#ifndef GRADCUBE_PROTOCOL_MESSAGE_FRAME_H_
#define GRADCUBE_PROTOCOL_MESSAGE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/frame_error.h"
#include "protocol/mac.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} * 1024;
inline constexpr unsigned kMaxFragments = 255;

// Cuts one message into frames.
class MessageSplitter {
 public:
  // `frame_bytes`: the longest frame that may be written, with Ethernet's header. Keeps `message`,
  // which must not change while this is used, and `keys`, with which frames get a MAC, and without
  // which a CRC. Throws std::invalid_argument if the hops are out of range.
  MessageSplitter(const LinkAddresses& link, RoutingHeader routing, std::size_t frame_bytes,
                  std::uint64_t incarnation, std::uint64_t number,
                  std::span<const std::uint8_t> message, const ServerKeys* keys = nullptr);

  // How many frames there are. 0: the message is empty, longer than kMaxMessageBytes or longer than
  // kMaxFragments frames hold.
  unsigned fragments() const { return fragments_; }

  // Writes a whole frame, headers, CRC or MAC and fragment, and returns its length. Writes nothing
  // and returns 0 if there is no such fragment or `out` is too short for it.
  std::size_t write(unsigned index, std::span<std::uint8_t> out) const;

 private:
  static constexpr std::size_t kMostHeaderBytes = header_bytes(FrameType::message, kMaxHops, true);

  const ServerKeys* keys_;
  std::span<const std::uint8_t> message_;
  std::array<std::uint8_t, kMostHeaderBytes> headers_{};  // what all fragments share
  MessageHeader header_{};                                // what their message headers share
  std::uint16_t address_sum_ = 0;
  std::size_t header_bytes_ = 0;
  std::size_t message_at_ = 0;
  std::size_t room_ = 0;  // bytes of message in each frame but the last
  unsigned fragments_ = 0;
};

// One fragment as it has arrived.
struct MessageFragment {
  RoutingHeader routing;
  MessageHeader header;
  std::span<const std::uint8_t> bytes;  // of the frame that was read
};

// Reads and checks one whole frame, its MAC included, or without keys its CRC.
// FrameError::unsupported_type: it is good and carries something else. Unless the result is
// FrameError::none, `out` is undefined. The caller checks that the route ends at this server.
FrameError read_message_frame(std::span<const std::uint8_t> frame, MessageFragment& out,
                              const ServerKeys* keys = nullptr);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_MESSAGE_FRAME_H_
