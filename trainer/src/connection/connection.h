// The session's Unix socket: the way in, the daemon's notices, the way out.
//
// A SOCK_SEQPACKET socket: one message, one packet (shared_layout.h). Once joined it is silent
// unless something goes wrong; each side learns that the other is gone when it closes. One thread
// until it has joined; then any.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_CONNECTION_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/connection/options.h"

namespace gradcube::trainer {

// The memory that the daemon offers to a trainer.
struct Offering {
  shared::Offer offer;
  Descriptor region;
};

// What the daemon gives to a trainer that it admits.
struct Admission {
  shared::Welcome welcome;
  Descriptor doorbell;
};

// The longest wait for a daemon's answer, and for a place in its backlog.
inline constexpr int kHandshakeMilliseconds = 5000;

// Nobody listens at `path`.
Failure no_daemon(const std::string& path);

class Connection {
 public:
  // Connects. Throws Failure: GRADCUBE_ENODAEMON when nobody listens at `path`, GRADCUBE_EJOB when
  // the daemon there belongs to a user who is not trusted (trust.h).
  explicit Connection(std::string path);

  // The two steps of joining: says hello, and gets memory; says that the memory is mapped and
  // sealed (region.h), and is admitted. Each waits for its answer at most kHandshakeMilliseconds.
  // A join() that fails has left the job in order, if the daemon had admitted it.
  // Throws Failure: with the daemon's own code and message when it refuses, GRADCUBE_EPROTOCOL when
  // its answer is malformed or of another layout version.
  Offering ask(const std::string& job, std::uint64_t heap_bytes, Wish wish);
  Admission join();

  // Sends a message of shared_layout.h. A failure shows itself as a closed socket, too, when the
  // next message is received. say(): what the daemon must hear, if it reads what came before within
  // a second; false where it does not. tell(): without waiting, what it need not hear.
  template <typename T>
  bool say(const T& message) {
    return send(&message, sizeof(message), kPatience);
  }
  template <typename T>
  void tell(const T& message) {
    send(&message, sizeof(message), 0);
  }

  // Ends the connection for the daemon, even if a child of clone() still holds the socket, and
  // wakes the thread that polls it. The descriptor stays this object's, so that no thread that
  // still uses it meets another file under its number.
  void shut_down();

  // Closes the descriptor alone. In forked children: the parent's connection goes on.
  void close() { socket_.reset(); }
  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }

 private:
  static constexpr int kPatience = 1000;  // milliseconds

  bool send(const void* message, std::size_t bytes, int patience);

  std::string path_;
  Descriptor socket_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_CONNECTION_H_
