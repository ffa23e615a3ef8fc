// The sockets on which trainers open their sessions: one per server, server-<digits>.sock in the
// run directory.
//
// Speaks trainer/shared_layout.h's messages. Trainers of users whom the daemon does not serve are
// refused (allowed_users.h). A trainer has died when its process has ended, which a pidfd shows, or
// its socket has closed, without a goodbye. A child of its own may keep the socket open.
// Nothing here blocks: a trainer that does not read its notices misses what its socket has no room
// for. Answers that trainers wait for, about memory and hubs, are sent as soon as there is room.
//
// A trainer that is evicted may learn it only at its next call. The weights of the job's hub that
// it may read stay, and are paid for, until it closes its socket or ends: it has been told, and
// copies them first, or has gone. What it still sends is not read, and answers that wait for room
// in its socket are not sent.
//
// No client keeps the control thread from the others. It reads at most kMostMessages messages of a
// connection at a time; a connection that has more is not read for kPause. It passes on only
// the newest of a trainer's inquiries, at most one per kInquiryPause: each asks all members. The
// last answer is repeated where the same is asked within the pause.
//
// To join a job may take a plan that nobody has asked for before, and so some milliseconds:
// kMostJoins trainers join in a round of the loop, of each user in turn.
//
// A trainer that has said hello gets its region, maps and seals it, and says so. Only then does it
// join, and is it touched: a region that is not sealed is refused (trainer/shared_layout.h).
//
// A trainer is welcomed when its node admits it (TrainerChannel): when its job's leader has
// answered. Until then it waits, without a limit of time here: its node has one.
//
// Limits: connection_limit.h; of those, a user may have a part (SessionLimits). A client that
// connects and has not said hello and mapped its memory within kHelloWithin is disconnected.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_SESSION_SERVER_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_SESSION_SERVER_H_

#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/fair_share.h"
#include "dataplane/daemon/node/node_group.h"
#include "dataplane/daemon/process/attended_clock.h"
#include "dataplane/daemon/process/turns.h"
#include "dataplane/daemon/trainers/region_growth.h"
#include "dataplane/sockets/client_listener.h"
#include "dataplane/sockets/client_log.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

// Who may connect, and how often at a time.
struct SessionLimits {
  AllowedUsers users{};
  std::optional<std::size_t> per_user{};  // without: all, or with tenants half of what there is
};

class SessionServer final : public TrainerChannel {
 public:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr unsigned kMostMessages = 16;
  static constexpr unsigned kMostJoins = 4;
  // Of all heaps of a user, where there are tenants: the daemon maps them, and has 2^47 bytes.
  static constexpr std::uint64_t kMostHeapOfUser = std::uint64_t{8} << 40;
  static constexpr auto kPause = std::chrono::milliseconds(20);
  static constexpr auto kInquiryPause = std::chrono::milliseconds(200);
  static constexpr auto kHelloWithin = std::chrono::seconds(5);
  // Answers to a trainer that wait for room: it waits for one about memory and one about a hub
  // before it asks again.
  static constexpr std::size_t kMostUntold = 2;

  // clock: the nodes'. quota: of the trainers' memory; outlives the server and the nodes. sockets:
  // the path to listen on, by server; each has a node. Becomes the nodes' channel for as long as it
  // lives. Throws control::SetupError.
  SessionServer(ControlLoop& loop, NodeGroup& nodes, const AttendedClock& clock,
                const bcube::AddressSpace& space,
                const std::map<bcube::ServerId, std::filesystem::path>& sockets, MemoryQuota& quota,
                const SessionLimits& limits = {}, ClientLog log = ClientLog());
  ~SessionServer() override;
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;

  // To be called after every round of the loop: does what was put off, and disconnects silent
  // clients.
  void tick(SteadyClock::time_point now);

  void admit(TrainerId trainer, const JoinedSession& session) override;
  void refuse(TrainerId trainer, std::int32_t code, const std::string& message) override;
  void notify(TrainerId trainer, const shared::Notice& notice) override;
  void give_hub(TrainerId trainer, const shared::Notice& notice, int descriptor) override;
  void evict(TrainerId trainer, std::int32_t code, const std::string& message) override;
  void record(const std::string& line) override { log_.line(line); }

  // Takes no more trainers, tells those that there are that the daemon ends, and their nodes that
  // they are gone: so the trainers of other daemons learn it now and not from silence. Without this
  // the destructor tells the trainers.
  void close();
  // Why: it is added to what the trainers are told then.
  void set_closing_cause(const std::string& cause) { closing_reason_ += ": " + cause; }

  // How many trainers a user may have connected at a time.
  std::size_t most_of_user() const { return most_of_user_; }

 private:
  struct Answer {
    shared::Notice notice;
    control::Descriptor memory;  // of the hub; none where it has none
  };

  struct Connection {
    bcube::ServerId server = 0;
    std::optional<TrainerRequest> request;  // from its hello until it joins
    std::shared_ptr<SessionRegion> region;  // since its hello
    bool mapped = false;                    // its memory; it waits for its turn to join
    std::optional<TrainerId> trainer;       // since it has joined
    bool welcomed = false;
    std::uint32_t pid = 0;
    std::uint32_t uid = 0;
    int process = -1;  // pidfd of the trainer
    SteadyClock::time_point since;
    std::optional<shared::Inquiry> inquiry;  // the newest one that was not passed on
    SteadyClock::time_point passed_on;
    std::optional<shared::Notice> report;  // the answer to the last that was passed on
    std::deque<Answer> untold;             // for which its socket has no room
    std::shared_ptr<ServerHub> reads;      // since it was evicted, if it may read one
  };

  void accept(const Accepted& client, bcube::ServerId server);
  std::optional<std::string> objection(const Accepted& client) const;
  void log_refusal(bcube::ServerId server, pid_t pid, const std::string& message);
  void watch_process(int socket);
  void process_has_ended(int socket);
  void read(int socket);
  bool read_message(int socket);
  void take_message(int socket, Connection& connection, std::string_view bytes);
  void take_hello(int socket, Connection& connection, std::string_view bytes);
  void offer(int socket, Connection& connection);
  void take_mapped(int socket, Connection& connection);
  void join_in_turn();
  void join(int socket);
  void turn_away(int socket, std::int32_t code, const std::string& message);
  void reject(int socket, const Connection& connection);
  void pass_on(int socket, Connection& connection, SteadyClock::time_point now);
  void answer(int socket, const shared::Notice& notice, int memory = -1);
  void tell_untold();
  void tell_closing(int socket);
  void end(int socket, Departure departure, std::string reason);
  void end_evicted(int socket);
  void give_up_without_memory(int socket);
  void close_connection(int socket);

  ControlLoop& loop_;
  NodeGroup& nodes_;
  const AttendedClock& clock_;
  bcube::AddressSpace space_;
  MemoryQuota& quota_;
  RegionGrowth growth_;
  std::size_t most_connections_;
  control::FairShare share_;
  std::size_t most_of_user_;
  MemoryQuota addresses_;                   // of this process, which users' heaps take
  std::map<uid_t, std::size_t> connected_;  // by user
  ClientLog log_;
  std::map<int, Connection> connections_;  // by socket
  std::map<TrainerId, int> sockets_;
  std::set<int> put_off_;      // sockets with an inquiry
  std::set<int> untold_;       // sockets whose trainers have answers that wait for room
  std::set<int> have_no_job_;  // sockets whose clients have not mapped their memory yet
  Turns to_join_;              // sockets
  // Of the message that is being read: no longer than a Hello that names kMaxMembers.
  std::vector<char> buffer_;
  std::string closing_reason_;
  const std::string no_memory_reason_ =
      "the daemon has no memory for what this trainer has asked of it: end other programs on its "
      "host, or give the daemon more";
  std::vector<std::unique_ptr<ClientListener>> listeners_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_SESSION_SERVER_H_
