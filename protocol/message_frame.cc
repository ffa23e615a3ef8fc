#include "protocol/message_frame.h"

#include <algorithm>
#include <cstring>

#include "protocol/frame_layout.h"
#include "protocol/header_fields.h"

namespace gradcube::protocol {

using namespace frame_layout;

MessageSplitter::MessageSplitter(const LinkAddresses& link, RoutingHeader routing,
                                 std::size_t frame_bytes, std::uint64_t incarnation,
                                 std::uint64_t number, std::span<const std::uint8_t> message,
                                 const ServerKeys* keys)
    : keys_(keys), message_(message) {
  routing.authenticated = keys != nullptr;
  std::uint8_t* const frame = headers_.data();
  message_at_ = store_prefix(frame, link, routing, kFirstSourcePort);
  address_sum_ = ip_sum(frame);
  header_bytes_ = header_bytes(FrameType::message, routing.hop_count, routing.authenticated);
  if (frame_bytes <= header_bytes_ || message.empty() || message.size() > kMaxMessageBytes) return;
  room_ = std::min(frame_bytes - header_bytes_, kMaxPayloadBytes);
  const std::size_t needed = (message.size() + room_ - 1) / room_;
  if (needed > kMaxFragments) return;
  fragments_ = static_cast<unsigned>(needed);
  header_ = {.incarnation = incarnation,
             .number = number,
             .fragments = static_cast<std::uint8_t>(fragments_)};
}

std::size_t MessageSplitter::write(unsigned index, std::span<std::uint8_t> out) const {
  if (index >= fragments_) return 0;
  const std::size_t begin = index * room_;
  const auto bytes = message_.subspan(begin, std::min(room_, message_.size() - begin));
  const std::size_t frame_bytes = header_bytes_ + bytes.size();
  if (out.size() < frame_bytes) return 0;
  std::uint8_t* const frame = out.data();
  std::memcpy(frame, headers_.data(), header_bytes_);
  store_type_and_lengths(frame, FrameType::message, address_sum_, frame_bytes);
  MessageHeader header = header_;
  header.index = static_cast<std::uint8_t>(index);
  header.length = static_cast<std::uint16_t>(bytes.size());
  HeaderWriter write{frame + message_at_};
  fields(write, header);
  std::memcpy(frame + header_bytes_, bytes.data(), bytes.size());
  seal(out.first(header_bytes_), bytes, keys_);
  return frame_bytes;
}

FrameError read_message_frame(std::span<const std::uint8_t> frame, MessageFragment& out,
                              const ServerKeys* keys) {
  ParsedFrame parsed;
  FrameError error = parse_frame(frame, frame.size(), parsed);
  if (error != FrameError::none) return error;
  const auto bytes = frame.subspan(parsed.header_bytes, parsed.payload_bytes);
  error = check(frame.first(parsed.header_bytes), bytes, keys);
  if (error != FrameError::none) return error;
  if (parsed.type != FrameType::message) return FrameError::unsupported_type;
  out = {parsed.routing, parsed.message, bytes};
  return FrameError::none;
}

}  // namespace gradcube::protocol
