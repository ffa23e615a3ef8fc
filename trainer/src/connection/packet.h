// A message as it comes from the daemon: bytes, until they are checked, and at most one descriptor.
//
// Owns the descriptor. One thread.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_PACKET_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_PACKET_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

struct Packet {
  // Room for every message of a daemon, and for one byte too many, which tells a longer message
  // from a fitting one.
  std::array<char, std::max(sizeof(shared::Welcome), sizeof(shared::Notice)) + 1> bytes;
  std::size_t size = 0;
  Descriptor descriptor;  // that came with it; none if several did
  bool is_cut = false;    // this process had no room for a descriptor

  shared::MessageType type() const {
    shared::MessageType type{};
    if (size >= sizeof(type)) std::memcpy(&type, bytes.data(), sizeof(type));
    return type;
  }

  // False where it is shorter than a T, or longer. What its type says is not looked at.
  template <typename T>
  bool read(T& message) const {
    if (size != sizeof(message)) return false;
    std::memcpy(&message, bytes.data(), sizeof(message));
    return true;
  }
};

// Whether a number from the daemon is one of gradcube.h's codes that it may give. They have no gap.
// What comes after them, GRADCUBE_ECORRUPT, the library alone finds.
constexpr bool is_result_code(int code) {
  return code <= GRADCUBE_OK && code >= GRADCUBE_ECANCELED;
}

// False where the packet is no well-formed notice.
inline bool read_notice(const Packet& packet, shared::Notice& notice) {
  return packet.read(notice) && is_result_code(notice.code) &&
         std::memchr(notice.text, '\0', sizeof(notice.text)) != nullptr;
}

enum class Received { packet, nothing, closed };

// Takes one packet from the socket, without blocking. A daemon that closes its end before it has
// read all resets the connection: that is reported once, before the daemon's last message.
Received receive_packet(int socket, Packet& packet);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_PACKET_H_
