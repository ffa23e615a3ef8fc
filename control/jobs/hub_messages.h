// What two daemons tell each other about a hub that a server without trainers aggregates: the
// daemon of the job's first server, the CALLER (hub_caller.h), and the aggregator's (hub_fetch.h).
//
//   HubCall -> HubAsk(part) -> HubPart(part), for each part of the hub's table
//           -> HubState, from when the aggregator has the whole table
//   HubEnd, once, when the caller's hub is gone
//
// The caller repeats its call for as long as there is the hub: so each hears that the other lives.
// Messages may be lost, doubled and reordered. Who hears nothing for kHubSilence has lost the
// other.
//
// Plain data, and hostile until message_codec.h has read it.
#ifndef GRADCUBE_CONTROL_JOBS_HUB_MESSAGES_H_
#define GRADCUBE_CONTROL_JOBS_HUB_MESSAGES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/base/hkdf.h"
#include "control/jobs/job_nonce.h"
#include "protocol/job_id.h"

namespace gradcube::control {

inline constexpr std::chrono::milliseconds kHubSilence{2000};
inline constexpr std::size_t kHubPartBytes = 16 * 1024;

struct HubName {
  protocol::JobId job = protocol::kNoJob;
  std::uint32_t number = 0;  // 1, 2, 3, ... among the hubs of the job

  bool operator==(const HubName&) const = default;
  bool operator<(const HubName& other) const {
    return job != other.job ? job < other.job : number < other.number;
  }
};

struct HubCall {
  HubName hub;
  JobNonce nonce;           // of the job
  KeyId key = 0;            // as the job's TransportFacts have it
  std::uint32_t epoch = 0;  // the same: a hub ends with it
  std::string job;
  std::vector<bcube::ServerId> members;  // of the job, ascending; the aggregator is none of them
  std::uint32_t trainers = 1;            // on each
  std::uint32_t weight = 1;              // of the job
  std::uint32_t window = 0;              // segments per flow
  std::uint32_t user = 0;                // whose memory it counts as
  std::uint32_t table_bytes = 0;
  bool stands = false;  // the caller knows that the aggregator has made it

  bool operator==(const HubCall&) const = default;
};
struct HubAsk {
  HubName hub;
  std::uint32_t part = 0;

  bool operator==(const HubAsk&) const = default;
};
struct HubPart {
  HubName hub;
  std::uint32_t part = 0;
  std::string bytes;

  bool operator==(const HubPart&) const = default;
};
struct HubState {
  enum class Progress { making, stands, failed };

  HubName hub;
  Progress progress = Progress::making;
  std::int32_t code = 0;  // failed: GRADCUBE_E...
  std::string why;        // the same: a whole sentence

  bool operator==(const HubState&) const = default;
};
struct HubEnd {
  HubName hub;

  bool operator==(const HubEnd&) const = default;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_HUB_MESSAGES_H_
