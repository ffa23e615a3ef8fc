// The hubs that a node aggregates for jobs that have no trainers on its server: PHub's PBox. For
// each its engines have a job without trainers and without lanes, which other servers' hubs send
// to. It is there from the call of the job's first server (control/jobs/hub_messages.h) until its
// end, and is gone when nothing is heard of the caller any more.
//
// What a caller gives up while it is being made runs on for a while, on a thread of its own: new
// hubs are refused while there is much of that. Else who calls for one hub after another, and lets
// each go, would have threads and tables without end.
//
// Errors: what a caller asks for and cannot have is told to it, with a sentence. Threads: the
// control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_AGGREGATED_HUBS_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_AGGREGATED_HUBS_H_

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregation/kernels.h"
#include "control/base/fair_share.h"
#include "control/jobs/hub/hub_fetch.h"
#include "control/plan/base/topology.h"
#include "dataplane/daemon/engines/departed_sessions.h"
#include "dataplane/daemon/engines/job_engines.h"
#include "dataplane/daemon/engines/node_engines.h"
#include "dataplane/daemon/hub/job_hub.h"
#include "dataplane/engine/memory/memory_quota.h"
#include "protocol/job_id.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// A hub that a server without trainers of the job aggregates, as `status` of that server shows it.
struct HubFacts {
  control::HubCall call;    // of the first of the job's servers
  control::HubState state;  // as the caller is told
  bcube::ServerId aggregator = 0;
  // All of these are 0 until it is made.
  std::uint64_t keys = 0;
  std::uint64_t weights_bytes = 0;
  std::uint64_t memory_bytes = 0;    // all that counts as the user's: weights, state, what waits
  std::uint64_t reserved_bytes = 0;  // of packet memory
};
std::string_view progress_name(control::HubState::Progress progress);

// What all hubs of a server are made with. All that is named outlives them.
struct HubSurroundings {
  const control::Topology& topology;
  const aggregation::Kernels& kernels;
  DepartedSessions& departed;
  MemoryQuota* const& quota;                 // of users; null: there is none
  control::FairShare share{};                // among users, of hubs and their tables
  std::launch threads = std::launch::async;  // as of HubWish
};

class AggregatedHubs {
 public:
  static constexpr std::size_t kMost = 64;  // at a time
  // Of their tables together.
  static constexpr std::uint64_t kMostTableBytes = 2 * shared::kMostHubTableBytes;

  // Of hubs that were given up, and are still being made.
  static constexpr std::size_t kMostGivenUp = 8;
  // Of those that were made, so that none is made again.
  static constexpr std::size_t kMostRemembered = 4096;

  // The engines outlive it.
  AggregatedHubs(bcube::ServerId server, const HubSurroundings& around, const NodeEngines& engines);
  ~AggregatedHubs();
  AggregatedHubs(const AggregatedHubs&) = delete;
  AggregatedHubs& operator=(const AggregatedHubs&) = delete;

  // A HubCall, a HubPart or a HubEnd.
  void on_message(const control::NodeMessage& message, control::Instant now,
                  control::NodeMessages& out);
  // Of a hub here, perhaps: trainers have pushed a key differently.
  void on_event(const EngineEvent& event, control::NodeMessages& out);
  // To be called about every 20 ms. Returns what is to stand in the log.
  std::vector<std::string> look(control::Instant now, control::NodeMessages& out);

  // The server's engines stand still for hubs that this job made before this epoch, until these are
  // gone.
  void halt(protocol::JobId job, control::Epoch epoch);

  // Trainers of this server have this job, so who called for a hub of it had no right to: no
  // aggregator of a job has trainers of it.
  void drop_all_of(protocol::JobId job);

  bool empty() const { return hubs_.empty(); }
  // How many hubs that were given up are still being made, as of the last look().
  std::size_t given_up() const { return given_up_.size(); }
  bool knows(protocol::JobId job) const;
  std::vector<HubFacts> facts() const;  // by job and number

 private:
  // What the server has of a hub.
  struct Hosted {
    Hosted(const std::string& job, const std::string& server, const NodeEngines& of);

    const LanePlans plans;             // none
    std::unique_ptr<Session> session;  // without trainers
    JobEngines engines;
    JobHub hub;
  };
  struct Aggregated {
    control::HubFetch fetch;
    std::unique_ptr<Hosted> hosted;  // once its table is here, unless it has failed
  };

  struct Made {
    control::HubName hub;
    control::JobNonce job;

    bool operator==(const Made&) const = default;
  };

  void on_call(const control::NodeMessage& message, const control::HubCall& call,
               control::Instant now, control::NodeMessages& out);
  bool takes_the_place_of_others(const control::NodeMessage& message, const control::HubCall& call);
  bool was_made(const control::HubCall& call) const;
  void note_made(const control::HubCall& call);
  // Of all users, or of one.
  struct Places {
    std::size_t hubs = 0;
    std::uint64_t table_bytes = 0;
  };
  Places places(std::optional<std::uint32_t> user = std::nullopt) const;
  bool has_room_for(const control::HubCall& call) const;
  void begin(Aggregated& its) const;
  void fail(Aggregated& its, std::int32_t code, const std::string& why);
  void drop(Aggregated& its);
  std::string name_of(const control::HubCall& call) const;

  bcube::ServerId server_;
  const HubSurroundings around_;
  const NodeEngines& engines_;
  std::map<control::HubName, Aggregated> hubs_;
  std::deque<Made> made_;  // the last ones
  std::vector<std::unique_ptr<UnfinishedWork>> given_up_;
};

// Of trainers that have pushed a key of their hub differently, as `server` has found.
std::string hub_disagreement(const std::string& job, const std::string& key,
                             const std::string& server);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_AGGREGATED_HUBS_H_
