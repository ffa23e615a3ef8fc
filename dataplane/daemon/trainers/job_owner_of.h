// Whose job a trainer asks for (control/jobs/job_owner.h): that of all who know the secret which
// it gives, else its user's.
//
// Pure function; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_TRAINERS_JOB_OWNER_OF_H_
#define GRADCUBE_DATAPLANE_DAEMON_TRAINERS_JOB_OWNER_OF_H_

#include <string_view>
#include <sys/types.h>

#include "control/jobs/job_owner.h"

namespace gradcube::dataplane {

// own: the user is the daemon's own, or root. Without a secret it is empty. The hash of a secret
// depends on the job's name: who has seen that of one job knows nothing of another's.
control::JobOwner job_owner_of(std::string_view job, std::string_view secret, uid_t user, bool own);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_TRAINERS_JOB_OWNER_OF_H_
