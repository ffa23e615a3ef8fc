// The daemon of a run directory on this host: what has to be so before it starts, and its end.
//
// Errors are control::SetupError. One thread.
#ifndef GRADCUBE_CLI_UP_OWN_DAEMON_H_
#define GRADCUBE_CLI_UP_OWN_DAEMON_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <sys/types.h>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

// Makes sure that the directory exists, that no daemon runs in it, nor one of a server or of
// switches in a directory in it, and that no sockets of an earlier one are left. Returns how many
// sockets one had left that did not end in good order.
std::size_t prepare(const control::RunDirectory& directory);

// Ends the message of `down` where none runs that is this cluster's.
inline constexpr std::string_view kNothingToEnd = "there is nothing to end";

// Ends the daemon and those in directories in this one, waits until they are gone, and removes what
// they have left. Returns its pid (0: not known), or that of one of them; nothing where none ran.
std::optional<pid_t> end_daemon(const control::RunDirectory& directory);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_OWN_DAEMON_H_
