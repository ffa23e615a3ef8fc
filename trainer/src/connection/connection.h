// The session's Unix socket: the way in, the daemon's notices, the way out.
//
// A SOCK_SEQPACKET socket: one message, one packet (shared_layout.h). Once joined it is silent
// unless something goes wrong; each side learns that the other is gone when it closes. One thread
// until it has joined; then any.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_CONNECTION_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_CONNECTION_H_

#include <cstdint>
#include <string>

#include "trainer/shared_layout.h"
#include "trainer/src/base/descriptor.h"
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

struct Answer;

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
  Offering ask(const std::string& job, std::uint64_t heap_bytes, const Options& options);
  Admission join();

  enum class Received { notice, nothing, closed };

  // Takes one notice, without blocking, and the descriptor that comes with it, if one does. A
  // malformed notice counts as closed: the session stops listening to such a daemon.
  Received receive(shared::Notice& notice, Descriptor& descriptor);

  // All without blocking; a failure shows itself as a closed socket at the next receive().
  // `number`: the collective's place in its lane.
  void send_inquiry(std::uint64_t request, std::uint32_t lane, std::uint64_t number);
  // A grown follows. False: there was no room for it, and nothing was sent.
  bool send_grow(std::uint64_t end, std::uint64_t wanted);
  // A hub_made follows.
  void send_make_hub(std::uint32_t number, std::uint32_t lane, std::uint64_t offset,
                     std::uint64_t bytes);
  void send_end_hub(std::uint32_t number);
  void send_goodbye();
  void send_abort();

  // Ends the connection for the daemon, even if a child of clone() still holds the socket, and
  // wakes the thread that polls it. The descriptor stays this object's, so that no thread that
  // still uses it meets another file under its number.
  void shut_down();

  // Closes the descriptor alone. In forked children: the parent's connection goes on.
  void close() { socket_.reset(); }
  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }

 private:
  void send_hello(const std::string& job, std::uint64_t heap_bytes, const Options& options);
  bool say(const void* message, std::size_t bytes);
  void await_answer();
  Answer receive_answer();

  std::string path_;
  Descriptor socket_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_CONNECTION_H_
