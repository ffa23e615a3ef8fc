// The nodes of one process, and the messages between them.
//
// A node may be taken out and put in again with a greater incarnation, as when a server's daemon is
// killed and started anew. In tests it may be stopped, as when its process stands still, and go on.
//
// Ownership: owns the nodes, their messages, and the sessions that outlive their nodes. The
// pollers, the fabric and the kernels outlive it. When it ends, packets may still point into
// departed sessions: end the traffic first (Fabric::discard_packets).
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_NODE_NODE_GROUP_H_
#define GRADCUBE_DATAPLANE_DAEMON_NODE_NODE_GROUP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dataplane/daemon/node/node.h"

namespace gradcube::dataplane {

class NodeGroup {
 public:
  NodeGroup(const control::Topology& topology, const aggregation::Kernels& kernels,
            const NodeTiming& timing);
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  // What the nodes share, to be set by others as it says.
  NodeSurroundings& around() { return around_; }

  // The frames between these nodes refer to their trainers' memory. So before a trainer gets its
  // buffers back unfinished, its job is halted at all of them: one that went on would add up what
  // the trainer writes there then, and tell its own that it ended well. Before the first add().
  void set_refers_to_memory();
  // How messages reach the nodes of other processes; without, there are none. all: those between
  // the nodes of this one travel so, too: for simulations. Before the first add(). The frames' pool
  // outlives the nodes.
  void carry_messages(const MessageFrames& frames, bool all) {
    around_.frames = frames;
    carries_all_ = all;
  }

  // What users may use of the host's memory. By default they may use all. It outlives the nodes.
  void set_quota(MemoryQuota& quota) { quota_ = &quota; }

  // See Node.
  void set_key(control::KeyId key);

  bool carries_messages() const { return around_.frames.pool != nullptr; }

  // There is no node of this server yet.
  Node& add(bcube::ServerId server, control::Incarnation incarnation,
            std::unique_ptr<NodeEngines> engines);
  void remove(bcube::ServerId server);
  void stop(bcube::ServerId server);
  void go_on(bcube::ServerId server);

  // Null if there is none.
  Node* find(bcube::ServerId server);
  Node& at(bcube::ServerId server) { return *nodes_.at(server); }
  const Node& at(bcube::ServerId server) const { return *nodes_.at(server); }
  std::vector<bcube::ServerId> servers() const;  // ascending
  std::deque<control::NodeMessage>& messages() { return around_.messages; }

  // An engine's event, for its node.
  void handle(const EngineEvent& event, control::Instant now);
  // Delivers what is due and carries out what follows, until nothing more is to be done now, or it
  // may not go on: then has_more(), and the next run() goes on there. Whether there was something.
  bool run(
      control::Instant now, const MayGoOn& may_go_on = [] { return true; });
  bool has_more() const { return runs_put_off_ != 0; }
  // When run() has something to do next.
  std::optional<control::Instant> deadline() const;
  // To be called about every 20 ms, with a run() between two calls: see Node::look(). Frees what
  // departed trainers have left behind once nothing points to it. Answers the nodes' wishes for
  // hubs as long as it may go on; the next look() goes on there.
  void look(
      control::Instant now, const MayGoOn& may_go_on = [] { return true; });

  // No node has anything of a job, and no message is under way.
  bool idle() const;
  std::vector<JobFacts> jobs(control::Instant now) const;
  // Those that servers aggregate for jobs without trainers there; by server.
  std::vector<HubFacts> hubs() const;
  // To be called about every tenth of a second: notes which jobs wait for a trainer, so that jobs()
  // can say since when.
  void note_waits(control::Instant now) { waits_.note(jobs(now), now); }
  std::uint64_t trainer_bytes() const;  // shared heaps, as far as they take memory
  std::map<protocol::JobId, std::string> job_names() const;
  FrameDrops dropped_messages() const;  // of other processes, by reason

 private:
  // While there is more to be done, time stands still for jobs: nothing is asked again, and nobody
  // is late. But not for so many runs that nobody is ever late.
  static constexpr unsigned kMostPutOff = 100;

  // Messages of one go, even if it may not go on.
  static constexpr unsigned kLeastPassedOn = 64;

  bool deliver(control::Instant now, const MayGoOn& may_go_on);
  bool pass_on(control::Instant now, const MayGoOn& may_go_on);
  void answer_hubs(control::Instant now, const MayGoOn& may_go_on);
  void deliver(const control::NodeMessage& message, control::Instant now);

  DepartedSessions departed_;
  MemoryQuota* quota_ = nullptr;
  NodeSurroundings around_;
  std::map<bcube::ServerId, std::unique_ptr<Node>> nodes_;
  std::set<bcube::ServerId> stopped_;
  bool carries_all_ = false;
  unsigned runs_put_off_ = 0;  // in a row
  bcube::ServerId next_for_hubs_ = 0;
  std::uint32_t faults_found_ = 0;  // by the last whole look(): see GuardedMemory
  WaitTimes waits_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_NODE_NODE_GROUP_H_
