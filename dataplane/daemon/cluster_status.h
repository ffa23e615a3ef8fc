// The status of all servers of a cluster whose daemons are on separate hosts, gathered by the
// daemon of one of them: `gradcube status --all`.
//
// The tool begins it and comes back until it is there, so that nothing here waits:
//
//   {"command":"status-of-all"}                {"inquiry":7}
//   {"command":"status-of-all","inquiry":7}    {"status":null}, and later {"status":{...}}
//
// The other daemons are asked over the fabric (control/jobs/status_exchange.h), and what they say
// is checked and put together (control/status/). The status has the shape of a test bed's: servers
// that do not answer are listed with the reason. It answers the others' questions, too. Its
// own status leaves out flows where they make it longer than a server may tell
// (status_exchange.h).
//
// Threads: the control thread, which serves trainers and must not stand still. What the others have
// said, up to 32 MiB, is therefore read, checked, put together and written as text by a thread of
// its own, one at a time. That thread owns copies of all that it reads, and hands back the text.
// The control thread begins it in tick(), looks there whether it has ended, and never waits for it;
// only the destructor does. The text is kept until that of a later inquiry is there.
#ifndef GRADCUBE_DATAPLANE_DAEMON_CLUSTER_STATUS_H_
#define GRADCUBE_DATAPLANE_DAEMON_CLUSTER_STATUS_H_

#include <cstdint>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string>

#include "control/jobs/status_exchange.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/node/node_group.h"

namespace gradcube::dataplane {

class ClusterStatus {
 public:
  using Status = std::function<nlohmann::ordered_json()>;

  // nodes: of one server, whose messages are carried. status: the own one, as status.h says. The
  // nodes and the settings outlive it; until it ends it gets what the nodes hear of statuses.
  ClusterStatus(NodeGroup& nodes, const control::ClusterSettings& settings,
                control::Incarnation incarnation, Status status);
  ~ClusterStatus();
  ClusterStatus(const ClusterStatus&) = delete;
  ClusterStatus& operator=(const ClusterStatus&) = delete;

  // The whole answer (sockets/control_server.h). Throws control::UsageError.
  std::string answer(const nlohmann::json& request);
  // To be called about every 20 ms, before NodeGroup::run().
  void tick(control::Instant now);

 private:
  void on_status_message(const control::NodeMessage& message, control::Instant now);
  void merge();
  void send(const control::NodeMessages& messages);

  NodeGroup& nodes_;
  const control::ClusterSettings& settings_;
  bcube::ServerId own_;
  Status status_;
  control::StatusAsker asker_;
  control::StatusAnswerer answerer_;
  std::future<std::string> merging_;  // of this inquiry
  std::uint64_t merging_for_;
  std::string merged_;  // the answer to this inquiry and to earlier ones
  std::uint64_t merged_for_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_CLUSTER_STATUS_H_
