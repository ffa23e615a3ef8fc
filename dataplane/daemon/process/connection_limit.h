// How many trainers' connections a daemon takes.
//
// Every server may have a trainer in each of kMaxJobs jobs, and kSpareConnections more may be in an
// aborted job or about to join. The process's limit of open files may allow fewer: then the daemon
// says so in its log, and does not start where it allows no job of all servers
// (control/base/descriptors.h).
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_CONNECTION_LIMIT_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_CONNECTION_LIMIT_H_

#include <cstddef>

namespace gradcube::dataplane {

inline constexpr std::size_t kSpareConnections = 256;

// To be called once, at start: it may log. Throws SetupError.
std::size_t most_connections(std::size_t servers);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_CONNECTION_LIMIT_H_
