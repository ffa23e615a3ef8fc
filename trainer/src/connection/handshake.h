// What a trainer says at the door of a daemon, and what it makes of the answer. Used by the thread
// that opens a session.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_HANDSHAKE_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_HANDSHAKE_H_

#include <string>

#include "trainer/src/base/failure.h"

namespace gradcube::trainer {

// The longest wait for a daemon's answer, and for a place in its backlog.
inline constexpr int kHandshakeMilliseconds = 5000;

// Nobody listens at `path`.
Failure no_daemon(const std::string& path);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_HANDSHAKE_H_
