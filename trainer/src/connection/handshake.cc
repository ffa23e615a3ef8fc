// What a trainer says at the door of a daemon, and what it makes of the answer.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "trainer/src/base/deadline.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/connection/connection.h"
#include "trainer/src/connection/packet.h"
#include "trainer/src/connection/settings.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

namespace {

void check_job_name(const std::string& job) {
  if (!shared::is_job_name(job)) {
    throw Failure(GRADCUBE_EJOB,
                  "invalid job name " + in_quotes(job) + ": " + shared::kJobNameRule);
  }
}

std::string own_version() {
  return "this library has layout version " + std::to_string(shared::kLayoutVersion);
}

Failure bad_answer(const std::string& path, const std::string& what) {
  return Failure(GRADCUBE_EPROTOCOL, "the daemon at " + path + " answered with " + what + ", and " +
                                         own_version() +
                                         ": use the library that came with the daemon");
}

// A daemon of version 1 closes the socket at a hello that is longer than its own.
Failure hung_up(const std::string& path) {
  return Failure(GRADCUBE_EPROTOCOL,
                 "the daemon at " + path +
                     " closed the connection at this trainer's hello: " + own_version() +
                     ", and the daemon perhaps version 1: use the library that came with the "
                     "daemon, or look with `gradcube status` whether it still runs");
}

Failure no_room(const std::string& path) {
  return Failure(GRADCUBE_ESYSTEM,
                 "this process has no room for the descriptors that the daemon at " + path +
                     " gives it: raise its limit of open files (ulimit -n)");
}

Failure refusal(const std::string& path, const Packet& answer) {
  shared::Notice notice{};
  if (!read_notice(answer, notice) || notice.code == GRADCUBE_OK) {
    return bad_answer(path, "a malformed refusal");
  }
  if (notice.code != GRADCUBE_EPROTOCOL) return Failure(notice.code, notice.text);
  return Failure(notice.code, std::string("the daemon at ") + path + " says: " + notice.text +
                                  " (" + own_version() + ", the daemon perhaps another)");
}

void await_answer(const Connection& connection) {
  const Deadline deadline = Deadline::in_milliseconds(kHandshakeMilliseconds);
  pollfd waiting{connection.fd(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) return;
  throw Failure(GRADCUBE_ENODAEMON, "the daemon at " + connection.path() +
                                        " accepted the connection but did not answer within " +
                                        std::to_string(kHandshakeMilliseconds / 1000) +
                                        " seconds: look at it with `gradcube status`");
}

// Throws unless the daemon answers with this type, whose messages are called `what`.
Packet receive_answer(const Connection& connection, shared::MessageType wanted,
                      const std::string& what) {
  using shared::MessageType;
  Packet answer;
  if (receive_packet(connection.fd(), answer) != Received::packet) {
    throw hung_up(connection.path());
  }
  if (answer.is_cut) throw no_room(connection.path());
  const MessageType type = answer.type();
  if (type == MessageType::refused || type == MessageType::closing) {
    throw refusal(connection.path(), answer);
  }
  if (type != wanted) {
    throw bad_answer(connection.path(), "neither " + what + " nor a refusal");
  }
  return answer;
}

}  // namespace

Failure no_daemon(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return Failure(GRADCUBE_ENODAEMON,
                   path +
                       " is not a socket: give the server-*.sock of a server, in the run "
                       "directory that `gradcube up` prints");
  }
  return Failure(GRADCUBE_ENODAEMON,
                 "no daemon answers at " + path + ": start a cluster with `gradcube up`");
}

Offering Connection::ask(const std::string& job, std::uint64_t heap_bytes, Wish wish) {
  check_job_name(job);
  const std::string secret = job_secret();
  wish.hello.version = shared::kLayoutVersion;
  wish.hello.features = shared::kFeatures;
  wish.hello.heap_bytes = heap_bytes;
  wish.hello.pid = static_cast<std::uint32_t>(::getpid());
  std::copy(job.begin(), job.end(), wish.hello.job);
  std::copy(secret.begin(), secret.end(), wish.hello.secret);
  iovec parts[] = {{&wish.hello, sizeof(wish.hello)},
                   {wish.members.data(), wish.members.size() * sizeof(std::uint32_t)}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  // A daemon that refuses at once has closed its end already; its answer can still be read.
  if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
      errno != ECONNRESET) {
    throw no_daemon(path_);
  }
  await_answer(*this);
  Packet answer = receive_answer(*this, shared::MessageType::offer, "an offer");
  // The version comes before the length: another version's message may well have another length.
  shared::Offer offer{};
  std::memcpy(&offer, answer.bytes.data(), std::min(answer.size, sizeof(offer)));
  if (offer.version != shared::kLayoutVersion) {
    throw bad_answer(path_, "layout version " + std::to_string(offer.version));
  }
  if (answer.size != sizeof(offer) || !answer.descriptor.valid()) {
    throw bad_answer(path_, "a malformed offer");
  }
  return {offer, std::move(answer.descriptor)};
}

Admission Connection::join() {
  // Keeps a place for the doorbell, so that its want shows before the daemon admits anybody.
  Descriptor place(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!place.valid()) throw no_room(path_);
  const shared::MessageType mapped = shared::MessageType::mapped;
  ::send(socket_.get(), &mapped, sizeof(mapped), MSG_NOSIGNAL);
  try {
    await_answer(*this);
    place.reset();
    Packet answer = receive_answer(*this, shared::MessageType::welcome, "a welcome");
    shared::Welcome welcome{};
    if (!answer.read(welcome) || !answer.descriptor.valid() || welcome.rank >= welcome.size ||
        welcome.size > INT32_MAX || welcome.server_number > INT32_MAX ||
        std::memchr(welcome.server, '\0', sizeof(welcome.server)) == nullptr) {
      throw bad_answer(path_, "a malformed welcome");
    }
    return {welcome, std::move(answer.descriptor)};
  } catch (const std::exception&) {
    say(shared::MessageType::
            goodbye);  // another thread took the place, or the answer came too late
    throw;
  }
}

}  // namespace gradcube::trainer
