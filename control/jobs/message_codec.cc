#include "control/jobs/message_codec.h"

#include "control/jobs/message_fields.h"
#include "control/jobs/message_form.h"
#include "protocol/message_frame.h"

namespace gradcube::control {

std::vector<std::uint8_t> encode_message(const NodeMessage& message,
                                         const bcube::AddressSpace& space) {
  MessageForm form(space);
  NodeMessage written = message;  // the fields of a form are not const
  fields(form, written);
  std::vector<std::uint8_t> bytes = form.take();
  if (!form.good() || bytes.size() > protocol::kMaxMessageBytes) bytes.clear();
  return bytes;
}

std::optional<NodeMessage> decode_message(std::span<const std::uint8_t> bytes,
                                          const bcube::AddressSpace& space) {
  if (bytes.size() > protocol::kMaxMessageBytes) return std::nullopt;
  MessageForm form(bytes, space);
  std::optional<NodeMessage> message(std::in_place);
  fields(form, *message);
  if (!form.done()) message.reset();
  return message;
}

}  // namespace gradcube::control
