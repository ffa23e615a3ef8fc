// Has one aggregator of a hub make its part, and watches over it as long as there is the hub: at
// the daemon of the job's first server (hub_messages.h), which has one for each.
//
// Single-threaded, no I/O, no clock: times and messages go in, messages come out.
#ifndef GRADCUBE_CONTROL_JOBS_HUB_HUB_CALLER_H_
#define GRADCUBE_CONTROL_JOBS_HUB_HUB_CALLER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "control/jobs/job_actions.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

class HubCaller {
 public:
  static constexpr Instant kRepeat = std::chrono::milliseconds(20);  // until it stands
  static constexpr Instant kPing = std::chrono::milliseconds(200);   // from then on

  // table: of call.table_bytes. aggregator_text: the server in words.
  HubCaller(bcube::ServerId own, bcube::ServerId aggregator, std::string aggregator_text,
            HubCall call, std::shared_ptr<const std::string> table, Instant now);

  const HubName& hub() const { return call_.hub; }
  // Of the aggregator, about this hub.
  void on_message(const NodeMessage& message, Instant now, NodeMessages& out);
  // To be called about every 20 ms.
  void on_time(Instant now, NodeMessages& out);
  void end(NodeMessages& out) const;

  // The aggregator has made it.
  bool stands() const { return call_.stands; }
  // There is none, or no more: nothing is called any more.
  struct Failure {
    std::int32_t code = 0;  // GRADCUBE_E...; 0: nothing is heard of the aggregator
    std::string why;        // a whole sentence
  };
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  bcube::ServerId own_;
  bcube::ServerId aggregator_;
  std::string aggregator_text_;
  HubCall call_;
  std::shared_ptr<const std::string> table_;
  Instant heard_;
  Instant next_call_;
  std::optional<Failure> failure_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_HUB_HUB_CALLER_H_
