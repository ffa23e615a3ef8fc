#include "dataplane/daemon/connection_limit.h"

#include <sys/resource.h>

#include "control/jobs/join_request.h"
#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

namespace {

// Descriptors that the daemon needs for itself, beyond one listener per server.
constexpr std::size_t kOwnDescriptors = 128;

}  // namespace

std::size_t most_connections(std::size_t servers) {
  const std::size_t wanted = control::kMaxJobs * servers + kSpareConnections;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  const std::size_t own = kOwnDescriptors + servers;
  const std::size_t possible = files.rlim_cur <= own ? 0 : (files.rlim_cur - own);
  const std::size_t most = possible / kDescriptorsPerTrainer;
  if (most >= wanted) return wanted;
  log::warn(
      "at most {} trainers can join: {} jobs on {} servers would be {}, but this process may open "
      "only {} files; raise its hard limit (ulimit -Hn)",
      most, control::kMaxJobs, servers, control::kMaxJobs * servers, files.rlim_cur);
  return most;
}

}  // namespace gradcube::dataplane
