#include "control/jobs/message_codec.h"

#include "control/jobs/byte_reader.h"
#include "control/jobs/byte_writer.h"
#include "control/jobs/message_fields.h"
#include "protocol/message_frame.h"

namespace gradcube::control {

std::vector<std::uint8_t> encode_message(const NodeMessage& message,
                                         const bcube::AddressSpace& space) {
  ByteWriter writer(space);
  fields(writer, message);
  std::vector<std::uint8_t> bytes = writer.take();
  if (!writer.good() || bytes.size() > protocol::kMaxMessageBytes) bytes.clear();
  return bytes;
}

std::optional<NodeMessage> decode_message(std::span<const std::uint8_t> bytes,
                                          const bcube::AddressSpace& space) {
  if (bytes.size() > protocol::kMaxMessageBytes) return std::nullopt;
  ByteReader reader(bytes, space);
  std::optional<NodeMessage> message(std::in_place);
  fields(reader, *message);
  if (!reader.done()) message.reset();
  return message;
}

}  // namespace gradcube::control
