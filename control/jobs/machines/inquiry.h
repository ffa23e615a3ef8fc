// A trainer's question why a collective is not done, as its agent pursues it.
//
//   among members    all others are asked how far they have come, again and again, and this
//                    server's own counts are taken; the report has what is known when all have
//                    answered, or at the deadline
//   before that      the job gathers: the leader's next answer says who is missing
//
// Plain state: the agent sends the messages and takes the time.
#ifndef GRADCUBE_CONTROL_JOBS_MACHINES_INQUIRY_H_
#define GRADCUBE_CONTROL_JOBS_MACHINES_INQUIRY_H_

#include <string>
#include <vector>

#include "control/jobs/job_actions.h"

namespace gradcube::control {

class Inquiry {
 public:
  Inquiry(const event::Asked& asked, Instant deadline) : asked_(asked), deadline_(deadline) {}

  // The members, once they are known. `lanes`: how many the job has.
  void ask(const std::vector<JobMember>& members, std::size_t lanes);
  // Of another inquiry, of a stranger: nothing happens.
  void on_counts(bcube::ServerId server, const Counts& counts);

  std::uint64_t number() const { return asked_.inquiry; }
  Instant deadline() const { return deadline_; }
  bool knows_members() const { return !members_.empty(); }
  // All members have answered.
  bool complete() const;
  std::vector<bcube::ServerId> unanswered() const;
  notice::Report report(const std::string& missing) const;

 private:
  event::Asked asked_;
  Instant deadline_;
  std::vector<MemberStanding> members_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MACHINES_INQUIRY_H_
