// Which daemons a trainer gives its gradients to: those of its own user and of root.
//
// A session shares its heap with the daemon, so a daemon of another user could read the gradients
// or change them. Root trusts its own daemons only. $GRADCUBE_DAEMON_UID names one more user: of a
// daemon that serves several users, or for a root trainer at the daemon of a user.
//
//   check_run_directory  before a socket is looked for: the rule of
//                        control/settings/run_directory.h, which the commands follow
//   check_daemon         once connected: the kernel says who listens there (SO_PEERCRED)
//
// Both throw Failure: GRADCUBE_EJOB when there is no trust, GRADCUBE_EINVAL for a bad
// $GRADCUBE_DAEMON_UID. Called by the thread that opens a session.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_TRUST_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_TRUST_H_

#include <string>
#include <sys/types.h>

namespace gradcube::trainer {

// Returns when the directory is missing: then no daemon runs there, which is another message.
void check_run_directory(const std::string& path);

// `socket` is connected to the daemon at `path`.
void check_daemon(int socket, const std::string& path);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_TRUST_H_
