#include "dataplane/daemon/process/session_server.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "dataplane/daemon/process/connection_limit.h"
#include "dataplane/daemon/trainers/session_messages.h"
#include "dataplane/daemon/trainers/trainer_region.h"
#include "dataplane/sockets/daemon_log.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// The region, which may outlive its trainer's session, with what it takes of its user's addresses.
std::shared_ptr<SessionRegion> with_addresses(std::shared_ptr<SessionRegion> region,
                                              MemoryQuota::Charge addresses) {
  struct Counted {
    MemoryQuota::Charge addresses;
    std::shared_ptr<SessionRegion> region;
  };
  const auto counted = std::make_shared<Counted>(Counted{std::move(addresses), std::move(region)});
  return {counted, counted->region.get()};
}

}  // namespace

SessionServer::SessionServer(ControlLoop& loop, NodeGroup& nodes, const AttendedClock& clock,
                             const bcube::AddressSpace& space,
                             const std::map<bcube::ServerId, std::filesystem::path>& sockets,
                             MemoryQuota& quota, const SessionLimits& limits, ClientLog log)
    : loop_(loop),
      nodes_(nodes),
      clock_(clock),
      space_(space),
      quota_(quota),
      growth_(loop, [this](int socket, const shared::Notice& notice) { answer(socket, notice); }),
      most_connections_(most_connections(sockets.size())),
      share_{limits.users.any_tenants()},
      most_of_user_(limits.per_user.value_or(share_.most(most_connections_))),
      addresses_(limits.users.any_tenants() ? kMostHeapOfUser : UINT64_MAX),
      log_(std::move(log)),
      buffer_(sizeof(shared::Hello) + shared::kMaxMembers * sizeof(std::uint32_t)),
      closing_reason_(sockets.size() == 1 ? fmt::format("the daemon of {} is shutting down",
                                                        space.text(sockets.begin()->first))
                                          : "the daemon is shutting down") {
  for (const auto& [server, path] : sockets) {
    listeners_.push_back(std::make_unique<ClientListener>(
        loop_, path, SOCK_SEQPACKET,
        [this, at = server](const Accepted& client) { accept(client, at); }, limits.users));
  }
  nodes_.around().channel = this;
  nodes_.set_quota(quota_);
}

SessionServer::~SessionServer() {
  while (!connections_.empty()) {
    const int socket = connections_.begin()->first;
    tell_closing(socket);
    close_connection(socket);
  }
  nodes_.around().channel = nullptr;
}

void SessionServer::accept(const Accepted& client, bcube::ServerId server) {
  const int socket = client.socket;
  if (const auto reason = objection(client); reason.has_value()) {
    send_notice(socket, make_notice(shared::MessageType::refused, GRADCUBE_EJOB, *reason));
    ::close(socket);
    log_refusal(server, client.pid, *reason);
    return;
  }
  control::Descriptor held(socket);  // until close_connection() closes it
  std::size_t& of_user = connected_[client.uid];
  Connection& connection = connections_[socket];
  ++of_user;
  held.release();
  connection.server = server;
  connection.pid = static_cast<std::uint32_t>(client.pid);
  connection.uid = static_cast<std::uint32_t>(client.uid);
  connection.since = SteadyClock::now();
  try {
    have_no_job_.insert(socket);
    loop_.add(socket, [this, socket] { read(socket); });
    watch_process(socket);
  } catch (...) {
    close_connection(socket);
    throw;
  }
}

std::optional<std::string> SessionServer::objection(const Accepted& client) const {
  const uid_t user = client.uid;
  if (client.standing == Standing::stranger) return AllowedUsers::refusal(user);
  if (connections_.size() >= most_connections_) {
    return fmt::format(
        "this daemon already has {} trainers, the most that it takes; its log says if a limit of "
        "open files is the reason",
        connections_.size());
  }
  const std::size_t of_user = connected_.contains(user) ? connected_.at(user) : 0;
  if (!share_.allows(most_connections_, connections_.size(), of_user)) {
    return fmt::format("user {} has {} trainers here, as many as are left for others: end some",
                       user, of_user);
  }
  if (of_user < most_of_user_) return std::nullopt;
  return fmt::format(
      "user {} has {} trainers at this daemon and may have {}: end some, or start the cluster with "
      "a larger --user-sessions",
      user, of_user, most_of_user_);
}

// Last of all, as there may be no memory for it.
void SessionServer::log_refusal(bcube::ServerId server, pid_t pid, const std::string& message) {
  log_.line(fmt::format("refused a trainer on server {} (pid {}): {}", space_.text(server), pid,
                        message));
}

void SessionServer::read(int socket) {
  unsigned messages = 0;
  while (messages < kMostMessages && read_message(socket)) ++messages;
  const auto found = connections_.find(socket);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const SteadyClock::time_point now = SteadyClock::now();
  pass_on(socket, connection, now);
  if (messages == kMostMessages) loop_.pause_for(socket, kPause);
}

// Whether there was one, and the connection may have more.
bool SessionServer::read_message(int socket) {
  const auto found = connections_.find(socket);
  if (found == connections_.end()) return false;
  const ssize_t received = recv(socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  // Told once of a trainer that has closed its socket with notices unread. What it sent before that
  // can still be read.
  if (received < 0 && errno == ECONNRESET) return true;
  if (received <= 0) {
    end(socket, Departure::death, "died");
    return false;
  }
  // A message that is longer than any is none.
  const auto bytes = static_cast<std::size_t>(received);
  const std::string_view message =
      bytes > buffer_.size() ? std::string_view() : std::string_view(buffer_.data(), bytes);
  try {
    take_message(socket, found->second, message);
  } catch (const std::bad_alloc&) {
    give_up_without_memory(socket);
    throw;
  }
  return connections_.contains(socket);
}

void SessionServer::take_message(int socket, Connection& connection, std::string_view bytes) {
  shared::MessageType type{};
  if (bytes.size() >= sizeof type) std::memcpy(&type, bytes.data(), sizeof type);
  shared::Inquiry inquiry{};
  shared::Grow grow{};
  shared::MakeHub hub{};
  shared::EndHub end_hub{};
  if (connection.reads != nullptr) return;
  if (type == shared::MessageType::hello && connection.region == nullptr) {
    take_hello(socket, connection, bytes);
  } else if (type == shared::MessageType::mapped && connection.request.has_value() &&
             !connection.mapped) {
    take_mapped(socket, connection);
  } else if (type == shared::MessageType::grow && connection.welcomed && read_as(bytes, grow)) {
    if (!growth_.report(socket, connection.region, grow)) reject(socket, connection);
  } else if (type == shared::MessageType::make_hub && connection.welcomed && read_as(bytes, hub)) {
    if (!nodes_.at(connection.server).ask_hub(*connection.trainer, hub)) reject(socket, connection);
  } else if (type == shared::MessageType::end_hub && connection.welcomed &&
             read_as(bytes, end_hub)) {
    nodes_.at(connection.server).end_hub(*connection.trainer, end_hub.number);
  } else if (type == shared::MessageType::inquiry && connection.welcomed &&
             read_as(bytes, inquiry)) {
    connection.inquiry = inquiry;
  } else if (type == shared::MessageType::abort && connection.welcomed) {
    end(socket, Departure::violation, "aborted the job");
  } else if (type == shared::MessageType::goodbye) {
    end(socket, Departure::orderly, "left the job");
  } else {
    reject(socket, connection);
  }
}

// Of a message that no trainer of this version sends.
void SessionServer::reject(int socket, const Connection& connection) {
  send_notice(socket, make_notice(shared::MessageType::closing, GRADCUBE_EPROTOCOL,
                                  "the daemon does not understand this trainer: use a library and "
                                  "a daemon of the same version"));
  if (!connection.trainer.has_value()) {
    log_.line(fmt::format("disconnected pid {} from server {}: it sent no valid hello",
                          connection.pid, space_.text(connection.server)));
  }
  const std::optional<TrainerId> trainer = connection.trainer;
  std::string reason = "was evicted by its daemon: it sent an invalid message";
  end_evicted(socket);
  if (!trainer.has_value()) return;
  nodes_.at(trainer->server).leave(*trainer, Departure::violation, std::move(reason), clock_.now());
}

void SessionServer::take_hello(int socket, Connection& connection, std::string_view bytes) {
  const std::uint32_t version = hello_version(bytes);
  if (version != 0 && version != shared::kLayoutVersion) {
    turn_away(socket, GRADCUBE_EPROTOCOL,
              fmt::format("the trainer's library speaks version {} of the shared layout, this "
                          "daemon version {}: install the same release of both",
                          version, shared::kLayoutVersion));
    return;
  }
  connection.request = read_hello(bytes);
  if (!connection.request.has_value()) {
    reject(socket, connection);
    return;
  }
  connection.request->pid = connection.pid;
  connection.request->uid = connection.uid;
  connection.request->owner =
      control::job_owner_of(connection.request->job, connection.request->secret, connection.uid,
                            AllowedUsers::is_owner(connection.uid));
  connection.request->secret.clear();
  offer(socket, connection);
}

// What the trainer maps and seals before it joins.
void SessionServer::offer(int socket, Connection& connection) {
  shared::Offer offered{};
  offered.type = shared::MessageType::offer;
  offered.version = shared::kLayoutVersion;
  offered.features = shared::kFeatures;
  std::shared_ptr<SessionRegion> region;
  try {
    region = make_trainer_region(connection.request->heap_bytes,
                                 MemoryQuota::Charge(quota_, connection.uid),
                                 nodes_.at(connection.server).engines().numa_node());
  } catch (const JoinRefused& refused) {
    turn_away(socket, refused.code(), refused.what());
    return;
  } catch (const std::exception& error) {
    turn_away(socket, GRADCUBE_ESYSTEM, error.what());
    return;
  }
  MemoryQuota::Charge addresses(addresses_, connection.uid);
  if (!addresses.set(region->bytes())) {
    turn_away(socket, GRADCUBE_ENOMEM,
              fmt::format(
                  "the heaps of user {}'s trainers take {} GiB of this daemon's address space and "
                  "may take {}; this trainer asked for {}: set GRADCUBE_HEAP to less",
                  connection.uid, addresses.used() >> 30, addresses.limit() >> 30,
                  connection.request->heap_bytes >> 30));
    return;
  }
  connection.region = with_addresses(std::move(region), std::move(addresses));
  offered.region_bytes = connection.region->bytes();
  if (!send_with(socket, offered, connection.region->descriptor())) close_connection(socket);
}

void SessionServer::take_mapped(int socket, Connection& connection) {
  if (!connection.region->is_sealed()) {
    turn_away(socket, GRADCUBE_EPROTOCOL,
              "the trainer has not sealed its shared memory: use the library that came with the "
              "daemon");
    return;
  }
  connection.mapped = true;
  have_no_job_.erase(socket);
  to_join_.add(connection.uid, socket);
}

void SessionServer::turn_away(int socket, std::int32_t code, const std::string& message) {
  const Connection& connection = connections_.at(socket);
  const bcube::ServerId server = connection.server;
  const auto pid = static_cast<pid_t>(connection.pid);
  send_notice(socket, make_notice(shared::MessageType::refused, code, message));
  close_connection(socket);
  log_refusal(server, pid, message);
}

void SessionServer::join_in_turn() {
  for (unsigned i = 0; i < kMostJoins && !to_join_.empty(); ++i) join(to_join_.take());
  if (!to_join_.empty()) loop_.hurry();
}

void SessionServer::join(int socket) {
  Connection& connection = connections_.at(socket);
  TrainerRequest request = *std::exchange(connection.request, std::nullopt);
  request.region = connection.region;
  try {
    // Its place is made first: where there is no memory for it, nobody has joined.
    std::map<TrainerId, int> places{{TrainerId{}, socket}};
    const TrainerId trainer = nodes_.at(connection.server).join(request, clock_.now());
    auto place = places.extract(places.begin());
    place.key() = trainer;
    sockets_.insert(std::move(place));
    connection.trainer = trainer;
  } catch (const JoinRefused& refused) {
    turn_away(socket, refused.code(), refused.what());
  } catch (const std::exception& error) {
    turn_away(socket, GRADCUBE_ESYSTEM, error.what());
  }
}

// The newest inquiry, if there is one. Soon after the last, only what was answered is answered.
void SessionServer::pass_on(int socket, Connection& connection, SteadyClock::time_point now) {
  if (!connection.inquiry.has_value()) return;
  const shared::Inquiry& asked = *connection.inquiry;
  if (now - connection.passed_on < kInquiryPause) {
    if (connection.report.has_value() && connection.report->request == asked.request) {
      send_notice(socket, *connection.report);
      connection.inquiry.reset();
    } else {
      put_off_.insert(socket);
    }
    return;
  }
  connection.report.reset();
  nodes_.at(connection.server)
      .inquire(*connection.trainer, asked.request, {asked.lane, asked.number}, clock_.now());
  connection.inquiry.reset();
  connection.passed_on = now;
}

void SessionServer::tick(SteadyClock::time_point now) {
  join_in_turn();
  tell_untold();
  std::erase_if(put_off_, [&](int socket) {
    Connection& connection = connections_.at(socket);
    if (connection.inquiry.has_value() && now - connection.passed_on >= kInquiryPause) {
      pass_on(socket, connection, now);
    }
    return !connection.inquiry.has_value();
  });
  std::vector<int> silent;
  for (const int socket : have_no_job_) {
    if (now - connections_.at(socket).since > kHelloWithin) silent.push_back(socket);
  }
  for (const int socket : silent) close_connection(socket);
}

}  // namespace gradcube::dataplane
