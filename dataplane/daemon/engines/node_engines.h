// The engines of one server, each on its poller.
//
// Ownership: owns the engines. The pollers, the packet memory, the ports and the event sink outlive
// it. It puts the engines on their pollers and takes them off again with its end.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_NODE_ENGINES_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_NODE_ENGINES_H_

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/daemon/engines/engine_at.h"
#include "dataplane/fabric/fabric.h"
#include "dataplane/host/packet_memory.h"
#include "protocol/port_credit.h"

namespace gradcube::dataplane {

// Where one of a server's engines runs.
struct EnginePlace {
  EngineSettings settings;
  Poller* poller = nullptr;
  PacketMemory* memory = nullptr;  // the poller's
  PacketShare* packets = nullptr;  // the engine's, of this memory
  int numa_node = -1;              // of its lcore; -1: any
};

class NodeEngines {
 public:
  // server: whose engines they are. ports: the server's, by number. credit: what each of them may
  // have granted, as many. Without places: a server that runs nothing. hears_others: whether nodes
  // of other processes send messages to this one's. steering: of the ports; where it is uncertain,
  // the engines hand over to each other what comes to the wrong queue.
  NodeEngines(const bcube::AddressSpace& space, bcube::ServerId server,
              const std::vector<Port*>& ports, const std::vector<protocol::CreditSettings>& credit,
              const std::vector<EnginePlace>& places, EventSink& events, bool hears_others = false,
              Steering steering = Steering::certain);
  ~NodeEngines();
  NodeEngines(const NodeEngines&) = delete;
  NodeEngines& operator=(const NodeEngines&) = delete;

  // In the order of their queues; the leader engine is among them.
  const std::vector<EngineAt>& all() const { return all_; }

  // Where all of its engines run, if that is one node: its trainers' memory should be there.
  std::optional<unsigned> numa_node() const { return numa_node_; }

  // Takes them off their pollers, and puts them on again: what a stopped process looks like to the
  // other servers. What was on its way from one to another is lost.
  void stop();
  void go_on();

  // Over all engines.
  NeighbourNumbers neighbour(bcube::Hop hop) const;
  const ServerLinks& links() const { return links_; }
  // Whether some path to the server begins with a link that works; those of others are taken to.
  bool reaches(bcube::ServerId server) const;
  // Whether the server has links, and none of them works.
  bool cut_off() const;

  const bcube::AddressSpace& space() const { return space_; }
  bcube::ServerId server() const { return server_; }
  // What nodes of other processes have sent to this one's; null if there are none.
  MessageInbox* inbox() { return inbox_.get(); }

 private:
  std::deque<protocol::PortCredit> credit_;  // by port
  bcube::AddressSpace space_;
  bcube::ServerId server_ = 0;
  ServerLinks links_;
  std::unique_ptr<MessageInbox> inbox_;
  std::unique_ptr<HandOver> hand_over_;  // null: every frame comes to the right queue
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<EngineAt> all_;
  std::optional<unsigned> numa_node_;
  bool running_ = false;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_NODE_ENGINES_H_
