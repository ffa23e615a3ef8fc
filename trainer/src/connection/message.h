// A message as it comes from the daemon: bytes, until they are checked.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_MESSAGE_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_MESSAGE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "trainer/shared_layout.h"
#include "trainer/src/base/result_code.h"

namespace gradcube::trainer {

// Large enough for every message of a daemon, and for one byte too many, which tells a longer
// message from a fitting one.
using Packet = std::array<char, std::max(sizeof(shared::Welcome), sizeof(shared::Notice)) + 1>;

inline bool is_well_formed(const shared::Notice& notice) {
  return is_result_code(notice.code) &&
         std::memchr(notice.text, '\0', sizeof(notice.text)) != nullptr;
}

// False when the packet's `bytes` are no notice.
inline bool read_notice(const Packet& packet, std::size_t bytes, shared::Notice& notice) {
  if (bytes != sizeof(notice)) return false;
  std::memcpy(&notice, packet.data(), sizeof(notice));
  return is_well_formed(notice);
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_MESSAGE_H_
