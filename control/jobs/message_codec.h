// The byte form of what daemons tell each other, so that daemons of different processes can talk.
// docs/protocol.md, section 5, describes it; message_fields.h lists the fields.
//
// A message has one byte form and no other: what decode_message() accepts, encode_message() writes
// again, byte for byte. Both refuse what breaks a rule of the format: servers outside the cluster,
// lanes that do not exist, lists out of order, names that are too long. Only texts for the user are
// never too long: encode_message() cuts them, as the rest of a message must not be lost with them.
//
// Neither trusts its input, keeps a reference or throws anything but std::bad_alloc. Decoding
// allocates in proportion to the bytes that it is given.
#ifndef GRADCUBE_CONTROL_JOBS_MESSAGE_CODEC_H_
#define GRADCUBE_CONTROL_JOBS_MESSAGE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

// The first byte of every message. Raised when the rest changes.
inline constexpr std::uint8_t kMessageFormat = 11;
// A longer text ends with "..." in the byte form. A trainer gets less of it anyway.
inline constexpr std::size_t kLongestText = 4096;

// Empty if the message breaks a rule or has more than protocol::kMaxMessageBytes. Of what daemons
// send only a Prepare can be as long, in a job of some 2,900 servers.
std::vector<std::uint8_t> encode_message(const NodeMessage& message,
                                         const bcube::AddressSpace& space);

std::optional<NodeMessage> decode_message(std::span<const std::uint8_t> bytes,
                                          const bcube::AddressSpace& space);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MESSAGE_CODEC_H_
