// What the daemons of two servers tell each other.
//
// Plain data. message_codec.h has its byte form, and checks that the servers are those of the
// cluster.
#ifndef GRADCUBE_CONTROL_JOBS_NODE_MESSAGE_H_
#define GRADCUBE_CONTROL_JOBS_NODE_MESSAGE_H_

#include <variant>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_messages.h"

namespace gradcube::control {

// "I am alive"; see greetings.h.
struct Greeting {
  Incarnation incarnation = 0;  // the sender's
  bool hears_you = false;       // the sender has heard the receiver lately

  bool operator==(const Greeting&) const = default;
};

struct NodeMessage {
  bcube::ServerId from = 0;
  bcube::ServerId to = 0;
  // The place in this list is the body's number in the byte form.
  std::variant<Greeting, JobMessage> body;

  bool operator==(const NodeMessage&) const = default;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_NODE_MESSAGE_H_
