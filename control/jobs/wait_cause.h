// Why a collective is not done, as far as one server can tell: plain data in, a sentence out. Tells
// three causes apart: a trainer that has not called, a daemon that is silent, and a link that loses
// what is sent.
#ifndef GRADCUBE_CONTROL_JOBS_WAIT_CAUSE_H_
#define GRADCUBE_CONTROL_JOBS_WAIT_CAUSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_actions.h"

namespace gradcube::control {

// What is known of another member while this server waits for a collective.
struct PeerFacts {
  bcube::ServerId server = 0;
  Instant since_heard{};           // since anything came from it
  std::uint64_t resent = 0;        // segments to it, since the wait began
  std::uint64_t acknowledged = 0;  // segments to it, since the wait began
  std::uint64_t submitted = 0;     // the newest collective of the lane that its trainer is known to
                                   // have submitted
};

// `silent`: as long as a healthy daemon never says nothing. Most severe cause first: silent
// daemons, then lossy links, then trainers.
std::string explain_wait(const std::vector<PeerFacts>& peers, std::uint64_t collective,
                         Instant silent, const bcube::AddressSpace& space);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_WAIT_CAUSE_H_
