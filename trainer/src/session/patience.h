// How long a trainer whose time is up waits for its daemon's word on why.
//
// Longer than the daemon takes for it, which may put an inquiry off for as long as it then waits
// for the answers of all members (control/jobs/job_actions.h): else what it has found out comes too
// late.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_PATIENCE_H_
#define GRADCUBE_TRAINER_SRC_SESSION_PATIENCE_H_

namespace gradcube::trainer {

inline constexpr int kInquiryMilliseconds = 500;

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_PATIENCE_H_
