#include "trainer/src/connection/handshake.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "trainer/src/base/deadline.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/connection/connection.h"
#include "trainer/src/connection/message.h"
#include "trainer/src/connection/packet_with_descriptor.h"
#include "trainer/src/connection/settings.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// A message that the daemon has sent at the door.
struct Answer {
  Packet packet{};
  std::size_t bytes = 0;
  Descriptor descriptor;  // that came with it

  shared::MessageType type() const {
    shared::MessageType type{};
    if (bytes >= sizeof(type)) std::memcpy(&type, packet.data(), sizeof(type));
    return type;
  }
  bool refuses() const {
    return type() == shared::MessageType::refused || type() == shared::MessageType::closing;
  }
};

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

// The version comes before the length: another version's message may well have another length.
Failure refusal(const std::string& path, const Packet& packet, std::size_t bytes) {
  shared::Notice notice{};
  if (!read_notice(packet, bytes, notice) || notice.code == GRADCUBE_OK) {
    return bad_answer(path, "a malformed refusal");
  }
  if (notice.code != GRADCUBE_EPROTOCOL) return Failure(notice.code, notice.text);
  return Failure(notice.code, std::string("the daemon at ") + path + " says: " + notice.text +
                                  " (" + own_version() + ", the daemon perhaps another)");
}

std::vector<char> hello_message(const std::string& job, std::uint64_t heap_bytes,
                                const Options& options, const std::string& secret) {
  shared::Hello hello{};
  hello.type = shared::MessageType::hello;
  hello.version = shared::kLayoutVersion;
  hello.features = shared::kFeatures;
  hello.heap_bytes = heap_bytes;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.rank = options.rank;
  hello.weight = options.weight;
  hello.lane_count = static_cast<std::uint32_t>(options.lanes.size());
  hello.reproducible = options.reproducible ? 1 : 0;
  hello.member_count = static_cast<std::uint32_t>(options.members.size());
  hello.trainers = static_cast<std::uint8_t>(options.trainers);
  hello.local = static_cast<std::int16_t>(options.local);
  std::memcpy(hello.job, job.data(), job.size());
  std::copy(options.lanes.begin(), options.lanes.end(), hello.lanes);
  std::memcpy(hello.secret, secret.data(), secret.size());

  const std::size_t member_bytes = options.members.size() * sizeof(std::uint32_t);
  std::vector<char> message(sizeof(hello) + member_bytes);
  std::memcpy(message.data(), &hello, sizeof(hello));
  if (member_bytes != 0) {
    std::memcpy(message.data() + sizeof(hello), options.members.data(), member_bytes);
  }
  return message;
}

// A daemon that closed without reading the hello resets the connection. The reset is reported once,
// before the answer.
ssize_t receive_after_reset(int socket, msghdr& message) {
  ssize_t received = -1;
  for (int attempts = 0; attempts < 2 && received < 0; ++attempts) {
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received < 0 && errno != ECONNRESET) break;
  }
  return received;
}

// Throws unless it is the whole offer of a daemon that speaks this layout.
shared::Offer read_offer(const std::string& path, const Answer& answer) {
  if (answer.refuses()) throw refusal(path, answer.packet, answer.bytes);
  if (answer.type() != shared::MessageType::offer) {
    throw bad_answer(path, "neither an offer nor a refusal");
  }
  std::uint32_t version = 0;
  if (answer.bytes >= sizeof(shared::MessageType) + sizeof(version)) {
    std::memcpy(&version, answer.packet.data() + sizeof(shared::MessageType), sizeof(version));
  }
  if (version != shared::kLayoutVersion) {
    throw bad_answer(path, "layout version " + std::to_string(version));
  }
  shared::Offer offer{};
  if (answer.bytes != sizeof(offer) || !answer.descriptor.valid()) {
    throw bad_answer(path, "a malformed offer");
  }
  std::memcpy(&offer, answer.packet.data(), sizeof(offer));
  return offer;
}

// Throws unless it is a whole welcome.
shared::Welcome read_welcome(const std::string& path, const Answer& answer) {
  if (answer.refuses()) throw refusal(path, answer.packet, answer.bytes);
  if (answer.type() != shared::MessageType::welcome) {
    throw bad_answer(path, "neither a welcome nor a refusal");
  }
  shared::Welcome welcome{};
  if (answer.bytes == sizeof(welcome)) {
    std::memcpy(&welcome, answer.packet.data(), sizeof(welcome));
  }
  if (answer.bytes != sizeof(welcome) || !answer.descriptor.valid() ||
      welcome.rank >= welcome.size || welcome.size > INT32_MAX ||
      welcome.server_number > INT32_MAX ||
      std::memchr(welcome.server, '\0', sizeof(welcome.server)) == nullptr) {
    throw bad_answer(path, "a malformed welcome");
  }
  return welcome;
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

Offering Connection::ask(const std::string& job, std::uint64_t heap_bytes, const Options& options) {
  check_job_name(job);
  send_hello(job, heap_bytes, options);
  await_answer();
  Answer answer = receive_answer();
  return {read_offer(path_, answer), std::move(answer.descriptor)};
}

Admission Connection::join() {
  // Keeps a place for the doorbell, so that its want shows before the daemon admits anybody.
  Descriptor place(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!place.valid()) throw no_room(path_);
  const shared::MessageType mapped = shared::MessageType::mapped;
  ::send(socket_.get(), &mapped, sizeof(mapped), MSG_NOSIGNAL);
  try {
    await_answer();
    place.reset();
    Answer answer = receive_answer();
    return {read_welcome(path_, answer), std::move(answer.descriptor)};
  } catch (const std::exception&) {
    send_goodbye();  // another thread took the place, or the answer came too late
    throw;
  }
}

void Connection::send_hello(const std::string& job, std::uint64_t heap_bytes,
                            const Options& options) {
  const std::vector<char> hello = hello_message(job, heap_bytes, options, job_secret());
  const ssize_t sent = ::send(socket_.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(hello.size())) return;
  // A daemon that refuses at once has closed its end already; its answer can still be read.
  if (errno != EPIPE && errno != ECONNRESET) throw no_daemon(path_);
}

void Connection::await_answer() {
  const Deadline deadline = Deadline::in_milliseconds(kHandshakeMilliseconds);
  pollfd waiting{socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) return;
  throw Failure(GRADCUBE_ENODAEMON, "the daemon at " + path_ +
                                        " accepted the connection but did not answer within " +
                                        std::to_string(kHandshakeMilliseconds / 1000) +
                                        " seconds: look at it with `gradcube status`");
}

Answer Connection::receive_answer() {
  Answer answer;
  PacketWithDescriptor message(answer.packet);
  const ssize_t received = receive_after_reset(socket_.get(), message.header());
  if (received <= 0) throw hung_up(path_);
  answer.bytes = static_cast<std::size_t>(received);
  answer.descriptor = message.take_descriptor();
  if ((message.header().msg_flags & MSG_CTRUNC) != 0) throw no_room(path_);
  return answer;
}

}  // namespace gradcube::trainer
