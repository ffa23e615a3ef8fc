// One trainer's membership in a job: the implementation of the C ABI's gradcube_session.
//
//   Connection  the socket: joins, receives notices, closes when the daemon is gone
//   Region      the shared memory;  SubmissionRing, CompletionRing, Heap: its three parts
//   Requests    the collectives whose end was not reported yet
//   Notices     the daemon's messages about failures
//   Sleeper     spin, then poll()
//
// Opening throws Failure. Afterwards every call returns 0 or a negative GRADCUBE_E... code and
// leaves code and message in last_code() and last_error(). A call that fails on its arguments
// changes nothing.
//
// Lost. When the daemon goes away, closes the session or writes an invalid completion, and when the
// trainer leaves, the session is lost: every collective in flight ends with that reason, later ones
// are refused with it. The memory stays mapped until the destructor.
//
// Fork. A forked child shares the rings, the heap and the socket with its parent, and any use of
// them would corrupt the parent's session. So the C ABI calls is_forked_copy() first and then
// refuse_forked_copy(); the destructor in a child frees the child's copies and touches nothing
// else.
//
// One thread at a time.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_H_
#define GRADCUBE_TRAINER_SRC_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

#include "trainer/src/connection.h"
#include "trainer/src/deadline.h"
#include "trainer/src/heap.h"
#include "trainer/src/notices.h"
#include "trainer/src/region.h"
#include "trainer/src/requests.h"
#include "trainer/src/rings.h"
#include "trainer/src/sleeper.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class Session {
 public:
  Session(Connection connection, const std::string& job, std::uint64_t heap_bytes);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return static_cast<int>(admission_.welcome.rank); }
  int size() const { return static_cast<int>(admission_.welcome.size); }

  void* allocate(std::size_t bytes);
  int free(void* block);

  int allreduce(void* buffer, std::size_t count, int dtype, int op, std::uint64_t& number);

  // Returns early, with `done` false, at the deadline and when a signal was caught.
  int poll(std::uint64_t number, int timeout_ms, bool& done);
  int wait(std::uint64_t number, int timeout_ms);

  void leave();

  bool is_forked_copy() const { return getpid() != owner_; }
  int refuse_forked_copy();

  int last_code() const { return last_code_; }
  const std::string& last_error() const { return last_error_; }
  int fail(int code, std::string message);

  // For when there is no memory for a message: last_error() is then empty.
  int fail(int code) noexcept;

 private:
  int check_arguments(const void* buffer, std::size_t count, int dtype, int op);
  int place(Request& request);
  int submit(Request& request, std::size_t count, int dtype, int op);
  int out_of_heap(std::size_t bytes);

  enum class OnSignal { go_on, stop };
  void await(Request& request, int timeout_ms, OnSignal on_signal);
  void sleep_until_ended(const Request& request, const Deadline& deadline, OnSignal on_signal);
  int report(Request& request);
  int time_out(Request& request);
  int unknown(std::uint64_t number);

  void reap();
  void end(Request& request, int code);
  void listen();
  void lose(int code, const std::string& message);
  void lose_daemon();
  void free_deferred();

  Connection connection_;
  Admission admission_;
  Region region_;
  SubmissionRing submissions_;
  CompletionRing completions_;
  Heap heap_;
  Sleeper sleeper_;
  Requests requests_;
  Notices notices_;
  std::optional<shared::Notice> daemons_report_;  // the answer to an inquiry
  std::vector<void*> deferred_frees_;  // freed by the trainer while a collective used them
  std::uint64_t next_number_ = 1;
  std::uint64_t next_to_complete_ = 1;
  bool ring_is_sound_ = true;  // false: the completion ring is corrupt and no longer read
  pid_t owner_ = getpid();     // the process that opened the session
  int lost_code_ = GRADCUBE_OK;
  std::string lost_message_;
  int last_code_ = GRADCUBE_OK;
  std::string last_error_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_H_
