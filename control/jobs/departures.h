// How trainers leave a job, and what the others are told: one table for all of them.
//
// A trainer leaves in order (gradcube_close(), gradcube_leave(), destroy_process_group(), the end
// of a Python process), dies (its process ends in any other way, which a pidfd or the closing of
// its socket shows), aborts or is evicted.
//
//   the job        in order                         dies             aborts, is evicted
//   gathers        ends: it cannot begin            ends             ends
//   runs           goes on (below)                  stops, ends      ends at once
//   stops or       the same, when it runs again;    ends             ends at once
//   is reset       if it ends, nothing more
//   has a hub      stops, ends                      stops, ends      ends at once
//   has no other   stops, ends: nobody is left      the same         the same
//
// A hub cannot do without a trainer: each round takes a push of every one, and its server may have
// a part of the weights. Freed, it is in nobody's way (docs/hub.md).
//
// Where it goes on, the leader tells all members, and each notes it. From then on
//
//   collectives    those that the trainer had submitted come to their end when the others have
//                  submitted them, too, however late. The first one beyond, in its lane, fails on
//                  all that submit it, as after a disagreement, once what is before it has ended:
//                  with GRADCUBE_EPEER, and a sentence that names job, collective, rank and server.
//                  What not all have submitted in other lanes fails with it. So a server waits
//                  for what has begun there, too, unless nothing is submitted, nothing ends and no
//                  segment passes for twice JobTiming's run_on: others may submit it only after
//                  what cannot be done
//   messages       what it had sent is received, however late. A receive of what it had not sent,
//                  and a send that it had not received, fail alike. So does what comes later
//   all else       is as before: the rest of other lanes, messages among others, other jobs
//   its memory     its daemon keeps it until the job ends, which is when the last trainer leaves,
//                  as what it had sent may be asked for until then; and so the place among the
//                  server's jobs, and what its user has of the quota
//   its name       a trainer that joins the same job waits until the old one has ended
//
// So who leaves late is waited for by nobody, and who leaves early keeps nobody from what does not
// need it. A job that stops runs on until all have completed what all had submitted, for
// JobTiming's run_on or run_on_after_death at most; then all that has not ended, and all that
// comes, fails with the sentence of who left.
#ifndef GRADCUBE_CONTROL_JOBS_DEPARTURES_H_
#define GRADCUBE_CONTROL_JOBS_DEPARTURES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/job_messages.h"

namespace gradcube::control {

// In one message, whose texts may be long.
inline constexpr std::size_t kMostDeparturesTold = 8;

// What a server knows of its job's departures.
class Departures {
 public:
  // It says as much of each lane as all others do.
  void note(const Departure& departure) {
    if (of(departure.server, departure.local) != nullptr) return;
    first_.resize(departure.submitted.size(), departure);
    for (std::size_t lane = 0; lane < first_.size(); ++lane) {
      if (departure.submitted[lane] < first_[lane].submitted[lane]) first_[lane] = departure;
    }
    // Last: where there is no memory for the others, it can be noted again.
    known_.emplace(std::pair(departure.server, departure.local), departure);
  }
  bool any() const { return !known_.empty(); }
  // Null if it has not left, as far as is known.
  const Departure* of(bcube::ServerId server, std::uint32_t local) const {
    const auto found = known_.find({server, local});
    return found == known_.end() ? nullptr : &found->second;
  }
  // Who has submitted least in the lane; of several, who was noted first. Null if nobody has left.
  const Departure* first_in(std::size_t lane) const {
    return lane < first_.size() ? &first_[lane] : nullptr;
  }

  // By lane, the first collective that a trainer here has submitted and one that has left has not,
  // as far as it is time to fail it; 0 if there is none. To be called again and again where some
  // have left. reached: what any trainer here has submitted; completed: what has ended for all
  // that are here. Of what a reset has failed, both count all. passed(): segments of collectives
  // that have come or gone; asked once in run_on, and only where other lanes are waited for.
  template <typename Passed>
  LaneNumbers missed(const LaneNumbers& reached, const LaneNumbers& completed, Instant run_on,
                     Instant now, const Passed& passed) {
    if (reached != reached_ || completed != completed_) {
      reached_ = reached;
      completed_ = completed;
      passed_.reset();
      moved_ = now;
    }
    const LaneNumbers none(reached.size(), 0);
    LaneNumbers missed = none;
    bool all_ended = true;
    for (std::size_t lane = 0; lane < reached.size(); ++lane) {
      const std::uint64_t shared = std::max(first_[lane].submitted[lane], completed[lane]);
      all_ended = all_ended && completed[lane] >= std::min(shared, reached[lane]);
      if (reached[lane] > shared && completed[lane] == shared) missed[lane] = shared + 1;
    }
    if (all_ended || missed == none) return missed;
    if (now - moved_ < run_on) return none;
    const std::uint64_t count = passed();
    if (passed_ == count) return missed;
    passed_ = count;
    moved_ = now;
    return none;
  }

 private:
  std::map<std::pair<bcube::ServerId, std::uint32_t>, Departure> known_;
  std::vector<Departure> first_;  // by lane
  // How far the trainers here had come when they last came further.
  LaneNumbers reached_;
  LaneNumbers completed_;
  std::optional<std::uint64_t> passed_;  // since then, when it was asked last
  Instant moved_{};
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_DEPARTURES_H_
