// Which servers have been heard of lately. Anything that arrives from a server counts. A server of
// which nothing is heard for the liveness time, since it was watched at the earliest, is silent; it
// is reported once, and watched again when it is heard of.
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
  void watch(bcube::ServerId server, Instant now) { heard_.try_emplace(server, now, false); }
  void forget(bcube::ServerId server) { heard_.erase(server); }
  // Of servers that are not watched: nothing happens.
  void on_heard(bcube::ServerId server, Instant now);

  // Those that have become silent since the last call.
  std::vector<bcube::ServerId> take_silent(Instant now);
  std::optional<Instant> deadline() const;
  // Of a server that is not watched: nothing.
  std::optional<Instant> last_heard(bcube::ServerId server) const;

 private:
  struct Heard {
    Heard(Instant when, bool is_silent) : at(when), silent(is_silent) {}
    Instant at;
    bool silent;
  };
  Instant limit_;
  std::map<bcube::ServerId, Heard> heard_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_LIVENESS_H_
