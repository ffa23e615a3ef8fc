// The daemon's side of the messages on a session's socket (trainer/shared_layout.h).
//
// Nothing here blocks: a message that the trainer's socket does not take at once is not sent.
#ifndef GRADCUBE_DATAPLANE_DAEMON_SESSION_MESSAGES_H_
#define GRADCUBE_DATAPLANE_DAEMON_SESSION_MESSAGES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// code: a GRADCUBE_E... . A text that is too long is cut.
shared::Notice make_notice(shared::MessageType type, std::int32_t code, const std::string& text);
// number: what the completions that it explains name.
shared::Notice make_failure(std::uint32_t number, std::int32_t code, const std::string& text);
// The answer to an inquiry about this request.
shared::Notice make_report(std::uint64_t request, const std::string& text);

bool send_notice(int socket, const shared::Notice& notice);

// Sends both descriptors with it.
bool send_welcome(int socket, const shared::Welcome& welcome, int region, int doorbell);

// The message as a T, if it is as long as one.
template <typename T>
bool read_as(std::string_view bytes, T& message) {
  if (bytes.size() != sizeof message) return false;
  std::memcpy(&message, bytes.data(), sizeof message);
  return true;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_SESSION_MESSAGES_H_
