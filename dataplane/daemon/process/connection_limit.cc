#include "dataplane/daemon/process/connection_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "control/base/descriptors.h"
#include "control/base/errors.h"
#include "control/jobs/join_request.h"
#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

std::size_t most_connections(std::size_t servers) {
  const std::size_t wanted = control::kMaxJobs * servers + kSpareConnections;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  const std::size_t least = control::descriptors_for(servers, servers);
  if (files.rlim_cur < least) {
    throw control::SetupError(fmt::format(
        "this process may open {} files, and with a trainer on each of its {} servers it needs "
        "{}: raise `ulimit -n`",
        files.rlim_cur, servers, least));
  }
  const std::size_t own = control::descriptors_for(servers, 0);
  const std::size_t most = (files.rlim_cur - own) / control::kDescriptorsPerTrainer;
  if (most >= wanted) return wanted;
  log::warn(
      "at most {} trainers can join: {} jobs on {} servers would be {}, but this process may open "
      "only {} files; raise its hard limit (ulimit -Hn)",
      most, control::kMaxJobs, servers, control::kMaxJobs * servers, files.rlim_cur);
  return most;
}

}  // namespace gradcube::dataplane
