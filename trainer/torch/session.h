// A process group's membership in a job, and the memory that it shares with the daemon.
//
// Owned together by the process group and by every block of memory: the job is left when the group
// ends, and the memory stays mapped until the last tensor in it has gone.
//
// Any thread may call anything. In a forked child the parent's session is refused by the library,
// and nothing here takes a lock that another thread may have held at the fork.
//
// Errors: std::runtime_error with the library's message.
#ifndef GRADCUBE_TRAINER_TORCH_SESSION_H_
#define GRADCUBE_TRAINER_TORCH_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <vector>

#include "gradcube/gradcube.h"

namespace gradcube::pytorch {

// What a group asks for when it joins its job.
struct Membership {
  std::string socket;  // empty: where the library looks for it
  std::string job;
  int rank = 0;                        // the group's rank, which the job gets as well
  std::vector<std::uint32_t> servers;  // empty: all of the cluster
  unsigned trainers_per_server = 1;
  std::string algorithm;  // empty: the cluster's default
  bool reproducible = false;
  unsigned weight = 1;
  unsigned lanes = 1;  // each of higher priority than the one before it
};

class Session {
 public:
  // The library works in place on what lies in one block and begins at a multiple of this, as every
  // block does.
  static constexpr std::size_t kAlignment = 64;

  explicit Session(const Membership& wanted);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  gradcube_session* get() const { return session_; }

  // Of the job, when it is complete.
  int size() const { return gradcube_size(session_); }

  // Ends what is in flight. Blocks stay valid.
  void leave() { gradcube_leave(session_); }

  // Null where there is no memory: the caller then takes other memory, which is staged.
  void* allocate(std::size_t bytes);
  void release(void* block);

  // The least multiple of what in-place memory has to begin at, that so many bytes fit in.
  static std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) & ~(kAlignment - 1);
  }

  // Whether the library may work on these bytes where they are. A reproducible job copies what it
  // adds with carriers, and nothing else.
  bool is_shared(const void* buffer, std::size_t bytes) const;

  // Whether this process has opened the session, and is not a forked child.
  bool is_own() const;

  // The message of this thread's last failure.
  std::string last_error() const { return gradcube_last_error(session_); }

 private:
  gradcube_session* session_ = nullptr;
  const pid_t owner_;

  mutable std::mutex mutex_;  // guards all below
  std::map<std::uintptr_t, std::size_t> blocks_;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_SESSION_H_
