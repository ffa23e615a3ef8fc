// What the aggregator of a hub is told of it by its caller: the call, and the hub's table, part by
// part (hub_messages.h).
//
// Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_HUB_HUB_FETCH_H_
#define GRADCUBE_CONTROL_JOBS_HUB_HUB_FETCH_H_

#include <cstdint>
#include <string>
#include <utility>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

class HubFetch {
 public:
  // With the first call.
  HubFetch(const NodeMessage& message, const HubCall& call, Instant now);

  const HubCall& call() const { return call_; }
  // Whether the message is of this hub's caller.
  bool is_of(const NodeMessage& message) const { return message.from == caller_; }
  // The call again: answers it.
  void on_call(Instant now, NodeMessages& out);
  void on_part(const HubPart& part, Instant now, NodeMessages& out);
  // Nothing was heard of the caller for too long: its daemon, or all of the job, has gone.
  bool is_forsaken(Instant now) const { return now - heard_ >= 2 * kHubSilence; }

  // The whole table has come. It can be taken once.
  bool has_table() const { return fetched_ && !table_.empty(); }
  std::string take_table() { return std::exchange(table_, {}); }

  // What the caller is told from now on.
  void set_state(HubState::Progress progress, std::int32_t code = 0, std::string why = "");
  const HubState& state() const { return state_; }
  void tell(NodeMessages& out) const { out.push_back({own_, caller_, state_}); }

 private:
  void ask(NodeMessages& out) const;

  bcube::ServerId own_;
  bcube::ServerId caller_;
  HubCall call_;
  Instant heard_;
  std::string table_;
  bool fetched_ = false;
  HubState state_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_HUB_HUB_FETCH_H_
