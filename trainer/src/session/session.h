// One trainer's membership in a job: the implementation of the C ABI's gradcube_session.
//
//   Connection  the socket: joins, receives notices, closes when the daemon is gone
//   Region      the shared memory;  SubmissionRing, CompletionRing, Heap: its three parts
//   Requests    the collectives whose end was not reported yet;  BusyMemory: where they work
//   Notices     the daemon's messages about failures
//   HubListener  the hub that is built on the session, and uses it through what it has for hubs
//   session_memory.cc gets memory for the heap as it grows, from the system and from the daemon
//   Waiters     the threads that wait;  Sleeper: spin, then poll()
//   Failures    the last failure of each thread
//
// Opening throws Failure. Afterwards every call returns 0 or a negative GRADCUBE_E... code and
// leaves code and message in last_failure(). A call that fails on its arguments changes nothing.
//
// Threads. Any thread may call anything but the destructor. One mutex guards the tables and the
// rings; the heap and the failures have their own, which are taken after it. No thread holds the
// mutex while it sleeps, copies a buffer or touches memory, but for weights that callers look at as
// the session ends, up to a second for room in a full socket, which an abort() ends at once, and
// where there is no room to keep the heap, until no other thread copies to it or from it: touch().
// Private functions expect it held.
//
// Lost. When the daemon goes away, closes the session or writes an invalid completion, and when the
// trainer leaves or aborts, the session is lost: every collective in flight ends with that reason,
// later ones are refused with it. Memory and descriptors last until the destructor.
//
// Fork. A forked child has private copies of the heap's blocks and of the tables, and none of the
// descriptors (private_in_child.h), so its session is none. So the C ABI asks
// is_forked_copy() before it calls anything else, and disowns what close_forked_copy() could not
// free.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_SESSION_H_
#define GRADCUBE_TRAINER_SRC_SESSION_SESSION_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "trainer/src/base/deadline.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/private_in_child.h"
#include "trainer/src/connection/connection.h"
#include "trainer/src/connection/options.h"
#include "trainer/src/session/busy_memory.h"
#include "trainer/src/session/collective.h"
#include "trainer/src/session/event_descriptor.h"
#include "trainer/src/session/failures.h"
#include "trainer/src/session/heap.h"
#include "trainer/src/session/hub_listener.h"
#include "trainer/src/session/notices.h"
#include "trainer/src/session/region.h"
#include "trainer/src/session/requests.h"
#include "trainer/src/session/rings.h"
#include "trainer/src/session/sleeper.h"
#include "trainer/src/session/waiters.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class Session {
 public:
  Session(Connection connection, const std::string& job, std::uint64_t heap_bytes,
          const Wish& wish);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return static_cast<int>(place_.rank); }
  int size() const { return static_cast<int>(place_.size); }
  int server() const { return static_cast<int>(admission_.welcome.server_number); }

  void* allocate(std::size_t bytes);
  int free(void* block);

  int submit(const gradcube_collective& asked, std::uint64_t& number,
             shared::Gathered gathered = shared::Gathered::buffers);
  int submit(const gradcube_message& asked, std::uint64_t& number);

  // Returns early, with `done` 0, at the deadline and when a signal was caught.
  int poll(std::uint64_t number, int timeout_ms, int& done);
  int wait(std::uint64_t number, int timeout_ms);
  int cancel(std::uint64_t number);
  int forget(std::uint64_t number);

  // Throws Failure when the system has no descriptor.
  int event_fd();

  void leave();
  void abort() noexcept;
  bool is_aborted() const { return aborted_; }

  pid_t owner() const { return owner_; }
  bool is_forked_copy() const { return getpid() != owner_; }

  // In a forked child: whether its copy can be destroyed. It cannot if another thread was changing
  // the tables at the fork; then only unmaps the memory, and closes descriptors that a child of
  // clone() still has.
  bool close_forked_copy();

  int fail(int code, std::string message) noexcept {
    return failures_.set(code, std::move(message));
  }
  // The same, and throws nothing: where there is no memory for the text, it has none.
  template <typename Text>  // text(): a std::string
  int fail_with(int code, const Text& text) noexcept {
    return fail(code, text_if_any(text));
  }
  const LastFailure& last_failure() const { return failures_.last(); }

  // For the hub that is built on the session ---------------------------------
  // A Lock is enter()'s, and may be released meanwhile. What takes none expects it held, but for
  // run(), give_up() and what never changes.

  using Lock = std::unique_lock<std::mutex>;

  // Once, before anything is submitted. It outlives the session's end, which leave() makes.
  void set_hub(HubListener& hub) { hub_ = &hub; }

  Lock enter();
  std::mutex& mutex() { return mutex_; }
  const std::string& job() const { return job_; }
  const Place& place() const { return place_; }
  unsigned trainers() const { return trainers_; }  // of the job, on each server
  std::size_t heap_bytes() const { return heap_.capacity(); }
  Connection& connection() { return connection_; }

  // GRADCUBE_OK while it is not lost.
  int lost_code() const { return lost_code_; }
  const std::string& lost_message() const { return lost_message_; }
  // Throws Failure, where it is lost.
  void require_member() const {
    if (lost_code_ != GRADCUBE_OK) throw Failure(lost_code_, lost_message_);
  }
  // What the daemon has said of a failure; null if it has not, or long ago.
  const std::string* notice(std::uint32_t number) const { return notices_.text_of(number); }
  // Takes the completions, and the daemon's messages, that have come.
  void reap();
  void listen();
  // Wakes those whose turn has come.
  void call_served();
  // Until the hub is_answered(), the session is lost, or the deadline has passed.
  void await_hub(Lock& lock, const Deadline& deadline);

  int start(Lock& lock, const Collective& collective, const Wanted& wanted, std::uint64_t& number);
  // Submits it and waits for its end; gives it up where it fails. Without the lock.
  int run(const gradcube_collective& asked, const Deadline& deadline,
          shared::Gathered gathered = shared::Gathered::buffers);
  void give_up(std::uint64_t number, const Deadline& deadline);
  template <typename Call>
  void for_each_request(const Call& call) {
    requests_.for_each_listed(call);
  }

  // Calls call() without the lock: what touches memory at `where`, which may lie in the heap. That
  // is there until it has returned, though the session ends meanwhile. GRADCUBE_ENOMEM, and nothing
  // is called, where it is not there any more. It waits for nobody: who ends the session may wait
  // for it.
  template <typename Call>
  int touch(Lock& lock, const void* where, const Call& call) {
    if (region_.is_gone() && heap_.contains(where)) return out_of_region();
    const Touching touching(*this, lock);
    call();
    return GRADCUBE_OK;
  }
  template <typename Call>
  void require_touch(const void* where, const Call& call) {  // throws Failure instead
    Lock lock = enter();
    require(touch(lock, where, call));
  }

  // Of a block of the heap: where it lies in the region; gives it back.
  std::uint64_t offset_of(const void* block) const { return region_.offset_of(block); }
  void release(void* block) { heap_.release(block); }
  // allocate(), which throws Failure instead.
  std::byte* require_memory(std::size_t bytes);
  // Throws this thread's last failure, which has this code, unless there was none.
  void require(int code) const {
    if (code != GRADCUBE_OK) throw Failure(code, last_failure().message);
  }

 private:
  class Touching {
   public:
    Touching(Session& session, Lock& lock) : session_(session), lock_(lock) {
      ++session_.touching_;
      lock_.unlock();
    }
    ~Touching() {
      if (--session_.touching_ == 0) session_.touching_.notify_all();
      lock_ = session_.enter();
    }
    Touching(const Touching&) = delete;
    Touching& operator=(const Touching&) = delete;

   private:
    Session& session_;
    Lock& lock_;
  };

  // session.cc
  void close_in_child();
  void publish(Request& request);
  void ring_daemon();
  int report(Lock& lock, Request& request);
  std::string why_corrupt(const Request& request, const std::string& difference) const;
  void withdraw(Request& request) noexcept;
  void end_abandoned();
  int unknown(std::uint64_t number);

  // session_memory.cc
  void* allocate(Lock& lock, std::size_t bytes);
  int out_of_heap(std::size_t bytes);
  int out_of_region() noexcept;
  int grow(Lock& lock, std::size_t missing);
  class Growing;
  int get_memory(Lock& lock, std::size_t usable);
  int await_confirmation(Lock& lock, std::uint64_t end, std::uint64_t wanted);
  void take_confirmation(const shared::Notice& notice);
  void free_deferred();
  int may_submit(const Collective& collective);
  int place_in_heap(Lock& lock, const Collective& collective, std::byte*& staging);

  // session_wait.cc
  enum class OnSignal { go_on, stop };
  Request* await(Lock& lock, std::uint64_t number, int timeout_ms, OnSignal on_signal);
  void sleep(Lock& lock, Waiters::Waiter& waiter, const Deadline& deadline, OnSignal on_signal);
  bool lead(Lock& lock, const Waiters::Waiter& waiter, const Deadline& deadline);
  bool is_served(const Waiters::Waiter& waiter);
  int time_out(Lock& lock, Request& request);
  std::string why_late(const Request& request, std::int64_t waited_ms) const;

  // session_listen.cc
  Request* look_for(std::uint64_t number);
  void take_ends();
  void take(const shared::Completion& completion);
  void hear(const shared::Notice& notice, Descriptor descriptor);
  void end(Request& request, int code);
  std::string why_failed(const Request& request, const shared::Completion& completion);
  std::string why_unfitting(const Request& request, std::uint32_t other_dtype) const;
  std::string why_too_far(const Request& request) const;
  std::vector<std::span<const std::byte>> blocks_to_copy() const;  // for a child
  void lose(int code, std::string message);
  void lose_daemon();
  void lose_ring(const char* what);
  void update_events();

  Connection connection_;
  Offering offering_;
  Region region_;
  Admission admission_;
  Place place_;
  const unsigned trainers_;
  const std::string job_;
  Heap heap_;
  Sleeper sleeper_;
  Failures failures_;
  const pid_t owner_ = getpid();  // the process that opened the session
  std::atomic<bool> aborted_{false};
  std::atomic<unsigned> touching_{0};  // threads; none begins without the mutex

  std::mutex mutex_;  // guards all below
  SubmissionRing submissions_;
  CompletionRing completions_;
  Requests requests_;
  BusyMemory busy_;
  Notices notices_;
  Waiters waiters_;
  bool leader_sleeps_ = false;
  std::optional<EventDescriptor> events_;
  std::size_t in_flight_ = 0;  // listed and not ended
  std::size_t unreported_ends_ = 0;
  std::size_t abandoned_ = 0;          // listed, and nobody asks for their end
  std::vector<void*> deferred_frees_;  // freed by the trainer while a collective used them
  // How far the region has been touched, from its start.
  std::uint64_t touched_ = shared::kHeapOffset;
  bool growing_ = false;                 // a thread is getting memory
  bool reported_ = false;                // the daemon was told of memory, and has not answered
  int confirmation_code_ = GRADCUBE_OK;  // of its last answer
  std::string confirmation_text_;
  HubListener* hub_ = nullptr;
  std::uint64_t next_number_ = 1;
  std::array<std::uint64_t, shared::kMaxLanes> submitted_{};  // by lane
  bool ring_is_open_ = true;  // false: lost, and the completion ring is no longer read
  int lost_code_ = GRADCUBE_OK;
  std::string lost_message_;

  PrivateInChild private_in_child_;  // last: a thread may fork at any time, and needs all above
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_SESSION_H_
