// What the processes of `gradcube run` find in their environment: the variables that torchrun sets
// and scripts read, and the socket of the process's server.
//
// A server of the cluster stands for a host, as torchrun's nodes do: LOCAL_RANK is the process's
// number at its server and GROUP_RANK that of the server. So RANK is the rank that the process gets
// in a Gradcube job on the same servers, with LOCAL_WORLD_SIZE trainers on each (placement.h).
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_ENVIRONMENT_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_ENVIRONMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cluster/running_cluster.h"

namespace gradcube::cli {

// The same for all processes of a run.
struct LaunchWorld {
  std::uint32_t servers = 0;
  unsigned trainers_per_server = 1;
  std::string master;  // an address
  std::uint16_t port = 0;
  // The same on all hosts. Runs at the same time have others, unless they are in containers that
  // number their processes alike, or on several hosts with the same port.
  std::string run_id;
};

// "NAME=value", as execve() takes them. inherited: the caller's own, in which OMP_NUM_THREADS and
// PYTHONUNBUFFERED stay as they are; without them each gets 1.
std::vector<std::string> launch_environment(const char* const* inherited, const LaunchWorld& world,
                                            const PerfTrainer& trainer);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_ENVIRONMENT_H_
