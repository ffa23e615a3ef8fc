// Finds gradcubed, starts it in a session of its own, and waits until it says that the cluster is
// ready.
//
// The daemon gets the write end of a pipe and writes one line of JSON to it: {"ok":true,"pid":..}
// when every server and switch runs, or {"ok":false,"error":"message"}. Its standard output and
// error are the run directory's log.
#ifndef GRADCUBE_CLI_DAEMON_PROCESS_H_
#define GRADCUBE_CLI_DAEMON_PROCESS_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

// $GRADCUBED, else the gradcubed beside this executable, else the one of the build tree that this
// executable lies in, else the one in $PATH. Throws SetupError when there is none.
std::filesystem::path find_daemon();

struct DaemonStart {
  std::filesystem::path executable;
  std::string settings;  // ClusterSettings as JSON
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::function<void()> waiting;  // called several times a second meanwhile
};

// The pid of the ready daemon. Throws SetupError with the daemon's own message, or with one that
// says how it ended, and where its log is. No daemon is left running then, nor after an interrupt
// (interrupt.h).
pid_t start_daemon(const control::RunDirectory& directory, const DaemonStart& start);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_DAEMON_PROCESS_H_
