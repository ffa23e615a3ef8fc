// A message between two trainers, as one of them has submitted it: a send or a receive, checked.
//
// In the engine such messages are called mail: "messages" are what daemons tell each other
// (message_inbox.h). docs/messages.md says how they travel.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_MAIL_REQUEST_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_MAIL_REQUEST_H_

#include <cstdint>

#include "aggregation/element.h"

namespace gradcube::dataplane {

struct MailRequest {
  std::uint64_t request = 0;  // the trainer's name for it
  unsigned local = 0;         // the trainer's number among its server's
  bool sends = false;         // or receives
  std::uint32_t peer = 0;     // the rank of the other trainer
  std::uint64_t tag = 0;
  std::uint8_t* buffer = nullptr;
  std::uint64_t bytes = 0;  // of a send: of the message; of a receive: the most that it takes
  unsigned paths = 0;       // of a send: the most paths that it may take; 0: by its length
  aggregation::DataType dtype = aggregation::DataType::bytes;
  std::uint32_t place = 0;  // the trainer's, among its messages in flight
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_MAIL_REQUEST_H_
