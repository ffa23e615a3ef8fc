// What the daemons of two servers tell each other.
//
// Plain data. message_codec.h has its byte form, and checks that the servers are those of the
// cluster.
#ifndef GRADCUBE_CONTROL_JOBS_NODE_MESSAGE_H_
#define GRADCUBE_CONTROL_JOBS_NODE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/hub_messages.h"
#include "control/jobs/job_messages.h"

namespace gradcube::control {

// "I am alive"; see greetings.h.
struct Greeting {
  Incarnation incarnation = 0;  // the sender's
  bool hears_you = false;       // the sender has heard the receiver lately

  bool operator==(const Greeting&) const = default;
};

// Of a status in parts: see status_exchange.h.
inline constexpr std::uint32_t kMostStatusParts = 64;
inline constexpr std::size_t kStatusPartBytes = 4 * 1024;

struct StatusAsk {
  std::uint64_t inquiry = 0;  // as the asking server numbers them
  std::uint32_t part = 0;

  bool operator==(const StatusAsk&) const = default;
};
struct StatusPart {
  std::uint64_t inquiry = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;  // of the whole text
  std::string text;

  bool operator==(const StatusPart&) const = default;
};

// Who are you? See introductions.h.
struct Challenge {
  std::uint64_t nonce = 0;

  bool operator==(const Challenge&) const = default;
};
struct Response {
  std::uint64_t nonce = 0;

  bool operator==(const Response&) const = default;
};

struct NodeMessage {
  bcube::ServerId from = 0;
  bcube::ServerId to = 0;
  // The place in this list is the body's number in the byte form.
  std::variant<Greeting, JobMessage, StatusAsk, StatusPart, HubCall, HubAsk, HubPart, HubState,
               HubEnd, Challenge, Response>
      body;
  // Of the daemon that sends it. Not in the byte form: each frame has it.
  Incarnation sender = 0;
  // Of an authenticated frame's, as its sender numbers those to this server; else 0. Not in the
  // byte form either.
  std::uint64_t number = 0;

  bool operator==(const NodeMessage&) const = default;
};

using NodeMessages = std::vector<NodeMessage>;

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_NODE_MESSAGE_H_
