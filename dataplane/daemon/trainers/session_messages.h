// The daemon's side of the messages on a session's socket (trainer/shared_layout.h).
//
// Nothing here blocks: a message that the trainer's socket does not take at once is not sent.
#ifndef GRADCUBE_DATAPLANE_DAEMON_TRAINERS_SESSION_MESSAGES_H_
#define GRADCUBE_DATAPLANE_DAEMON_TRAINERS_SESSION_MESSAGES_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/daemon/trainers/trainer_channel.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// code: a GRADCUBE_E... . A text that is too long is cut.
shared::Notice make_notice(shared::MessageType type, std::int32_t code, const std::string& text);
// number: what the completions that it explains name.
shared::Notice make_failure(std::uint32_t number, std::int32_t code, const std::string& text);
// The answer to an inquiry about this request.
shared::Notice make_report(std::uint64_t request, const std::string& text);

bool send_notice(int socket, const shared::Notice& notice);

// Sends a descriptor with it: with an Offer the region, with a Welcome the trainer's doorbell, with
// a hub's Notice its weights.
bool send_with(int socket, const void* bytes, std::size_t size, int descriptor);
template <typename Message>
bool send_with(int socket, const Message& message, int descriptor) {
  return send_with(socket, &message, sizeof message, descriptor);
}

// Of a Hello or of what another version's trainer says; 0 of what is too short for either.
std::uint32_t hello_version(std::string_view bytes);
// What a Hello asks for, but for the trainer's process and memory; nothing if no trainer of this
// version sends such a message.
std::optional<TrainerRequest> read_hello(std::string_view bytes);

// The message as a T, if it is as long as one.
template <typename T>
bool read_as(std::string_view bytes, T& message) {
  if (bytes.size() != sizeof message) return false;
  std::memcpy(&message, bytes.data(), sizeof message);
  return true;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_TRAINERS_SESSION_MESSAGES_H_
