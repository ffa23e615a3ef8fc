// The fields of the headers behind the hops, listed once for who reads and who writes them:
// fields(form, header) passes each field, in the wire's order, to a HeaderReader or a HeaderWriter.
// For the .cc files of this folder alone.
//
// The callers have checked that the frame is long enough.
#ifndef GRADCUBE_PROTOCOL_HEADER_FIELDS_H_
#define GRADCUBE_PROTOCOL_HEADER_FIELDS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "protocol/bytes.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

// Reads fields from `at` on, which moves behind them.
struct HeaderReader {
  const std::uint8_t* at;

  template <std::unsigned_integral Number>
  void operator()(Number& number) {
    number = load_little<Number>(at);
    at += sizeof number;
  }
  // Two numbers in one byte, the first in the upper bits.
  template <unsigned kLowBits>
  void packed(auto& high, std::uint8_t& low) {
    high = static_cast<std::remove_reference_t<decltype(high)>>(*at >> kLowBits);
    low = *at++ & ((1U << kLowBits) - 1);
  }
  // A number whose lowest bits are flags, and whose others mean nothing yet.
  template <std::unsigned_integral Bits>
  void flags(std::same_as<bool> auto&... flag) {
    Bits bits = 0;
    (*this)(bits);
    unsigned bit = 0;
    ((flag = (bits >> bit++ & 1U) != 0), ...);
  }
};

// Writes fields to `at`, which moves behind them.
struct HeaderWriter {
  std::uint8_t* at;

  template <std::unsigned_integral Number>
  void operator()(Number number) {
    store_little(at, number);
    at += sizeof number;
  }
  template <unsigned kLowBits>
  void packed(auto high, std::uint8_t low) {
    *at++ = static_cast<std::uint8_t>(static_cast<unsigned>(high) << kLowBits | low);
  }
  template <std::unsigned_integral Bits>
  void flags(std::same_as<bool> auto... flag) {
    unsigned bits = 0;
    unsigned bit = 0;
    ((bits |= static_cast<unsigned>(flag) << bit++), ...);
    (*this)(static_cast<Bits>(bits));
  }
};

template <typename Header, typename Known>
concept Is = std::same_as<std::remove_const_t<Header>, Known>;

// What is the same in all frames of a flow: the first part of the transport header, of so many
// bytes.
inline constexpr std::size_t kFlowBytes = 8;
void flow_fields(auto& form, Is<TransportHeader> auto& transport) {
  form(transport.job);
  form(transport.epoch);
  form.template packed<kThreadBits>(transport.stage, transport.thread);
  form.template packed<kStepBits>(transport.lane, transport.step);
}

// The other part.
void fields(auto& form, Is<TransportHeader> auto& transport) {
  form(transport.backlog);
  form(transport.held);
  form(transport.credit);
  form.template flags<std::uint8_t>(transport.sent_again);
  form(transport.sequence);
  form(transport.acknowledged);
  form(transport.selective);
}

void fields(auto& form, Is<SegmentHeader> auto& segment) {
  form(segment.collective);
  form(segment.count);
  form(segment.length);
  form(segment.root);
  form(segment.kind);
  form(segment.type_and_operation);
}

void fields(auto& form, Is<MessageHeader> auto& message) {
  form(message.incarnation);
  form(message.number);
  form(message.index);
  form(message.fragments);
  form(message.length);
}

// Of a greeting and of a path failure.
void fields(auto& form, Is<LinkHeader> auto& link) {
  form(link.server);
  form(link.level);
  form(link.digit);
}

// Behind it, of a greeting.
void greeting_fields(auto& form, Is<LinkHeader> auto& link) {
  auto& full = link.full_frames;
  form.template flags<std::uint16_t>(full.sent, full.wanted, full.unproven, full.lost);
  form(link.settings.fingerprint);
  form(link.settings.bits_per_second);
  form(link.settings.mtu);
  form(link.number);
  form(link.echo);
}

void fields(auto& form, Is<PathProbeHeader> auto& probe) {
  form(probe.number);
  form.template flags<std::uint16_t>(probe.answer);
  form(probe.bits_per_second_left);
}

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_HEADER_FIELDS_H_
