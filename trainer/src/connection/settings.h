// What a session takes from its environment: which daemon to talk to, how large a heap to ask for,
// and what trainers of other users must know to join the job.
//
// Both throw Failure with a message that says what is accepted. Called by the thread that opens a
// session.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_SETTINGS_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gradcube::trainer {

// The daemon's socket: `given`, else $GRADCUBE_SOCKET, else the only server-*.sock in the run
// directory, which must belong to a trusted user (trust.h).
std::string find_socket(std::string_view given);

// $GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube, else /tmp/gradcube-<effective user id>.
std::string run_directory();

// $GRADCUBE_HEAP, else shared::kDefaultHeapBytes. Bytes.
std::uint64_t wanted_heap_bytes();

// $GRADCUBE_JOB_SECRET, at most shared::kJobSecretBytes - 1 bytes and at least
// kLeastJobSecretBytes; empty where there is none.
std::string job_secret();

// As in trainer/heap_size.h.
std::uint64_t parse_heap_bytes(std::string_view text);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_SETTINGS_H_
