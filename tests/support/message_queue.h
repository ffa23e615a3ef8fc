// A network for the messages between the nodes of one process, worse than they need rely on. Each
// message is due at a time. The network can lose messages, double them and delay them by random
// times, which reorders them; it can be cut between two servers, one way or both; and the messages
// to a server that stands still wait for it.
//
// It takes what the nodes send once divert() was called; run() then stands in for the nodes' own.
//
// Time is handed in; random numbers come from the seed. The control thread's.
#ifndef GRADCUBE_TESTS_SUPPORT_MESSAGE_QUEUE_H_
#define GRADCUBE_TESTS_SUPPORT_MESSAGE_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"
#include "dataplane/daemon/node/node_group.h"
#include "dataplane/fabric/emulated/random.h"

namespace gradcube::dataplane {

// Probabilities per message.
struct MessageFaults {
  double loss = 0;
  double duplicate = 0;
  control::Instant longest_delay{0};  // each message takes a random time up to this
};

class MessageQueue {
 public:
  explicit MessageQueue(std::uint64_t seed) : random_(seed) {}

  // It outlives the nodes' next message.
  void divert(NodeGroup& nodes);
  // Delivers what is due, and carries out what follows, until nothing more is to be done now.
  // Whether there was something.
  bool run(NodeGroup& nodes, control::Instant now);

  void set_faults(const MessageFaults& faults) { faults_ = faults; }
  // From now on nothing that `from` sends reaches `to`, until mend().
  void cut(bcube::ServerId from, bcube::ServerId to) { cuts_.insert({from, to}); }
  void mend() { cuts_.clear(); }
  // A server that stands still gets its messages when it goes on.
  void stop(bcube::ServerId server);
  void go_on(bcube::ServerId server);

  void send(const control::NodeMessage& message, control::Instant now);
  // The next one that is due, if there is one.
  std::optional<control::NodeMessage> take(control::Instant now);
  bool empty() const;
  // When the next one is due.
  std::optional<control::Instant> next() const;

 private:
  using Due = std::multimap<control::Instant, control::NodeMessage>;

  control::Instant delay();

  MessageFaults faults_;
  SeededRandom random_;
  std::set<std::pair<bcube::ServerId, bcube::ServerId>> cuts_;  // from, to
  std::map<bcube::ServerId, Due> kept_;                         // by server that stands still
  Due due_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_SUPPORT_MESSAGE_QUEUE_H_
