// Finds gradcubed, starts it in a process session of its own, and waits until it reports that the
// cluster is ready.
//
// The daemon inherits the write end of a pipe and writes one line of JSON to it:
// {"ok":true,"pid":..} when every server and switch runs, or {"ok":false,"error":"message"}. Its
// standard output and error go to the run directory's log.
#ifndef GRADCUBE_CLI_CLUSTER_DAEMON_PROCESS_H_
#define GRADCUBE_CLI_CLUSTER_DAEMON_PROCESS_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// Looks for $GRADCUBED, then for gradcubed beside this executable, then in the build tree of this
// executable, then in $PATH. Throws SetupError when there is none.
std::filesystem::path find_daemon();

// What root types to let an ordinary user's tool and daemon use this host's interfaces.
std::string setcap_command();

struct DaemonStart {
  std::filesystem::path executable;
  std::string servers = "--all";  // what gradcubed is to run, as it takes it
  std::string settings;           // ClusterSettings as JSON
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::function<void()> waiting{};  // called several times a second meanwhile
  // It ends with this process, and messages do not name its log.
  bool is_trial = false;
};

// The daemon of a cluster with these settings, as find_daemon() finds it.
DaemonStart daemon_of(const control::ClusterSettings& settings);

// Returns the pid of the ready daemon. Throws SetupError with the daemon's own message, or with one
// that says how it ended and where its log is. After an error or an interrupt (interrupt.h) no
// daemon is left running.
pid_t start_daemon(const control::RunDirectory& directory, const DaemonStart& start);

// Starts such a daemon in a folder of its own below `near`, or where temporary files are, calls
// `then`, which throws nothing, and ends it: whether `gradcube up` would work, but for its run
// directory. Throws what start_daemon() does.
void try_daemon(const std::filesystem::path& near, DaemonStart start,
                const std::function<void(const control::RunDirectory&)>& then);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_DAEMON_PROCESS_H_
