// The hubs of one server, for its node: those of its trainers' jobs, and those that it aggregates
// for others (aggregated_hubs.h). Where a job's hub has an aggregator, the job's first server calls
// it, and watches over it as long as there is the hub (control/jobs/hub/hub_caller.h).
//
// The node owns the jobs, and tells what they are (HubJob) with each call. Messages to other nodes
// and answers to trainers leave from here.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_HUB_NODE_HUBS_H_
#define GRADCUBE_DATAPLANE_DAEMON_HUB_NODE_HUBS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/jobs/hub/hub_caller.h"
#include "control/jobs/join_request.h"
#include "dataplane/daemon/hub/aggregated_hubs.h"
#include "dataplane/daemon/hub/job_hub.h"
#include "dataplane/daemon/trainers/trainer_channel.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

// A job with trainers on this server.
struct HubJob {
  control::Attempt attempt = 0;
  protocol::JobId id = protocol::kNoJob;  // once it is known
  control::Epoch epoch = 0;
  const control::JobDescriptor* descriptor = nullptr;  // the same
  const control::JoinRequest& request;
  const LanePlans& plans;  // of its lanes
  unsigned window = 0;     // segments per flow
  JobHub& hub;
};

class NodeHubs {
 public:
  using Send = std::function<void(const control::NodeMessage& message, control::Instant now)>;

  // All that is named outlives it. channel: null where nobody is told anything.
  NodeHubs(bcube::ServerId server, const HubSurroundings& around, const NodeEngines& engines,
           TrainerChannel*& channel, Send send);

  // A trainer wishes for a hub, whose table lies in its region: an answer follows, on the channel.
  // False: no trainer of this version says such a thing.
  bool ask(const HubJob& job, unsigned local, std::shared_ptr<const SessionRegion> region,
           const shared::MakeHub& wish) const;
  // Goes on with the job's hub. To be called about every 20 ms. Why the job has lost it, if it has:
  // its aggregator has gone, or has failed.
  std::optional<std::string> work(const HubJob& job, control::Instant now);
  // The job has gone.
  void forget(control::Attempt attempt, control::Instant now);

  // Of hubs here and there. Calls are those of jobs without trainers here.
  void on_message(const control::NodeMessage& message, control::Instant now);
  // Of no job of this server's trainers.
  void on_event(const EngineEvent& event, control::Instant now);
  // Goes on with what it aggregates. To be called as often. Returns what is to stand in the log.
  std::vector<std::string> look(control::Instant now);
  AggregatedHubs& aggregated() { return aggregated_; }
  const AggregatedHubs& aggregated() const { return aggregated_; }

 private:
  bool calls_aggregator(const HubJob& job, const ServerHub* hub) const;
  std::optional<std::string> call_aggregator(const HubJob& job, control::Instant now);
  void send(const control::NodeMessages& messages, control::Instant now) const;

  bcube::ServerId server_;
  const HubSurroundings around_;
  TrainerChannel*& channel_;
  Send send_;
  AggregatedHubs aggregated_;
  std::map<control::Attempt, control::HubCaller> callers_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_HUB_NODE_HUBS_H_
