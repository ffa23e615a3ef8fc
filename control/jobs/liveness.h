// Which servers have been heard of lately. Anything that arrives from a server counts. A server of
// which nothing is heard for the liveness time, since it was watched at the earliest, is silent. It
// is reported, and again each time that the liveness time has passed without a word: what began
// since with a message that was long under way has to learn of it, too.
//
// Single-threaded, no clock.
#ifndef GRADCUBE_CONTROL_JOBS_LIVENESS_H_
#define GRADCUBE_CONTROL_JOBS_LIVENESS_H_

#include <map>
#include <optional>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_actions.h"

namespace gradcube::control {

class Liveness {
 public:
  explicit Liveness(Instant limit) : limit_(limit) {}

  // A server that is watched already keeps its time.
  void watch(bcube::ServerId server, Instant now) { due_.try_emplace(server, now + limit_); }
  void forget(bcube::ServerId server) { due_.erase(server); }
  // Of servers that are not watched: nothing happens.
  void on_heard(bcube::ServerId server, Instant now);

  // Those that are to be reported.
  std::vector<bcube::ServerId> take_silent(Instant now);
  std::optional<Instant> deadline() const;

 private:
  Instant limit_;
  std::map<bcube::ServerId, Instant> due_;  // the next report, if nothing is heard
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_LIVENESS_H_
