// The hubs that a node aggregates for jobs that have no trainers on its server: PHub's PBox. Each
// is a member of its job without trainers and without lanes, which other servers' hubs send to. It
// is there from the call of the job's first server (control/jobs/hub_messages.h) until its end, and
// is gone when nothing is heard of the caller any more.
//
// What a caller gives up while it is being made runs on for a while, on a thread of its own: new
// hubs are refused while there is much of that. Else who calls for one hub after another, and lets
// each go, would have threads and tables without end.
//
// Errors: what a caller asks for and cannot have is told to it, with a sentence. Threads: the
// control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_GUESTS_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_GUESTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "control/jobs/hub_fetch.h"
#include "control/plan/topology.h"
#include "dataplane/daemon/departed_sessions.h"
#include "dataplane/daemon/job_report.h"
#include "dataplane/daemon/member.h"
#include "dataplane/daemon/node_engines.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/engine/memory_quota.h"
#include "protocol/job_id.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

class HubGuests {
 public:
  static constexpr std::size_t kMost = 64;  // at a time
  // Of their tables together.
  static constexpr std::uint64_t kMostTableBytes = 2 * shared::kMostHubTableBytes;

  // Of hubs that were given up, and are still being made.
  static constexpr std::size_t kMostGivenUp = 8;

  // All that is named outlives it. quota: null where memory is not limited.
  HubGuests(bcube::ServerId server, const control::Topology& topology,
            const aggregation::Kernels& kernels, const NodeEngines& engines,
            DepartedSessions& departed, MemoryQuota* const& quota);
  ~HubGuests();
  HubGuests(const HubGuests&) = delete;
  HubGuests& operator=(const HubGuests&) = delete;

  // A HubCall, a HubPart or a HubEnd.
  void on_message(const control::NodeMessage& message, control::Instant now,
                  control::NodeMessages& out);
  // Of a hub here, perhaps: trainers have pushed a key differently.
  void on_event(const EngineEvent& event, control::NodeMessages& out);
  // To be called about every 20 ms. Returns what is to stand in the log.
  std::vector<std::string> look(control::Instant now, control::NodeMessages& out);

  bool empty() const { return guests_.empty(); }
  // How many hubs that were given up are still being made, as of the last look().
  std::size_t given_up() const { return given_up_.size(); }
  bool knows(protocol::JobId job) const;
  // For `status`: by job and number.
  std::vector<HubFacts> facts() const;

 private:
  struct Guest {
    control::HubFetch fetch;
    std::unique_ptr<Member> member;  // once its table is here, unless it has failed
  };
  using Guests = std::map<control::HubName, Guest>;

  void on_call(const control::NodeMessage& message, const control::HubCall& call,
               control::Instant now, control::NodeMessages& out);
  bool takes_the_place_of_others(const control::NodeMessage& message, const control::HubCall& call);
  std::uint64_t table_bytes() const;
  void begin(Guest& guest) const;
  void fail(Guest& guest, std::int32_t code, const std::string& why);
  void drop(Guest& guest);
  std::string name_of(const control::HubCall& call) const;

  bcube::ServerId server_;
  const control::Topology& topology_;
  const aggregation::Kernels& kernels_;
  const NodeEngines& engines_;
  DepartedSessions& departed_;
  MemoryQuota* const& quota_;
  Guests guests_;
  std::vector<std::unique_ptr<HubMaking>> given_up_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_GUESTS_H_
