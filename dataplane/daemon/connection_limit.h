// How many trainers' connections a daemon takes.
//
// Every server may have a trainer in each of kMaxJobs jobs, and kSpareConnections more may be in an
// aborted job or about to join. The process's limit of open files may allow fewer
// (kDescriptorsPerTrainer each): then the daemon says so in its log.
#ifndef GRADCUBE_DATAPLANE_DAEMON_CONNECTION_LIMIT_H_
#define GRADCUBE_DATAPLANE_DAEMON_CONNECTION_LIMIT_H_

#include <cstddef>

namespace gradcube::dataplane {

inline constexpr std::size_t kSpareConnections = 256;
// A trainer's socket, its process, its memory and its doorbell.
inline constexpr std::size_t kDescriptorsPerTrainer = 4;

// To be called once, at start: it may log.
std::size_t most_connections(std::size_t servers);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_CONNECTION_LIMIT_H_
