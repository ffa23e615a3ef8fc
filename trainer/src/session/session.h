// One trainer's membership in a job: the implementation of the C ABI's gradcube_session.
//
//   Connection  the socket: joins, receives notices, closes when the daemon is gone
//   Region      the shared memory;  SubmissionRing, CompletionRing, Heap: its three parts
//   Requests    the collectives whose end was not reported yet;  BusyMemory: where they work
//   Notices     the daemon's messages about failures
//   session_hub.cc makes, feeds and ends a Hub, of the caller's; session_checkpoint.cc saves it
//   session_memory.cc gets memory for the heap as it grows, from the system and from the daemon
//   Waiters     the threads that wait;  Sleeper: spin, then poll()
//   Failures    the last failure of each thread
//
// Opening throws Failure. Afterwards every call returns 0 or a negative GRADCUBE_E... code and
// leaves code and message in last_failure(). A call that fails on its arguments changes nothing.
//
// Threads. Any thread may call anything but the destructor. One mutex guards the tables and the
// rings; the heap and the failures have their own, which are taken after it. No thread holds the
// mutex while it sleeps, copies a buffer or touches memory, and abort() takes none. Private
// functions expect it held.
//
// Lost. When the daemon goes away, closes the session or writes an invalid completion, and when the
// trainer leaves or aborts, the session is lost: every collective in flight ends with that reason,
// later ones are refused with it. Memory and descriptors last until the destructor.
//
// Fork. A forked child shares the socket with its parent, and has private copies of the heap's
// blocks and of the tables (private_in_child.h), so its session is none. So the C ABI asks
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
#include "trainer/src/hub/checkpoint_files.h"
#include "trainer/src/hub/hub.h"
#include "trainer/src/session/busy_memory.h"
#include "trainer/src/session/collective.h"
#include "trainer/src/session/event_descriptor.h"
#include "trainer/src/session/failures.h"
#include "trainer/src/session/heap.h"
#include "trainer/src/session/notices.h"
#include "trainer/src/session/region.h"
#include "trainer/src/session/requests.h"
#include "trainer/src/session/rings.h"
#include "trainer/src/session/sleeper.h"
#include "trainer/src/session/waiters.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

class HubParts;
class PlanePushes;
struct HubCopy;

class Session {
 public:
  Session(Connection connection, const std::string& job, std::uint64_t heap_bytes,
          const Options& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return static_cast<int>(place_.rank); }
  int size() const { return static_cast<int>(place_.size); }
  int server() const { return static_cast<int>(admission_.welcome.server_number); }

  void* allocate(std::size_t bytes);
  int free(void* block);

  int submit(const gradcube_collective& asked, std::uint64_t& number);
  int submit(const gradcube_message& asked, std::uint64_t& number);

  // session_hub.cc. Hubs belong to the caller, and end before the session. make_hub() throws
  // Failure.
  std::unique_ptr<Hub> make_hub(const gradcube_hub_settings& settings, int timeout_ms);
  // GRADCUBE_EAGAIN: it is still there.
  int free_hub(Hub& hub, int timeout_ms);
  struct PushWish {
    shared::Kind kind{};
    std::size_t key = 0;  // the place in the trainer's list
    const void* buffer = nullptr;
    void* weights = nullptr;  // where the new ones are wanted; null: nowhere
    double rate = 0;          // of gradients
    std::uint64_t steps = 0;  // of what is restored, or loaded
    unsigned plane = 0;       // of what is saved or loaded
    bool has_plane = false;   // of what is loaded: whether it is in the buffer
  };
  int push(Hub& hub, const PushWish& wish, std::uint64_t& number);
  int pull(Hub& hub, std::size_t key, void* weights);
  const void* weights(Hub& hub, std::size_t key);

  // session_checkpoint.cc: gradcube_hub_begin_checkpoint() and so on; they throw Failure.
  void begin_checkpoint(Hub& hub, const char* path, std::uint64_t step);
  void end_checkpoint(Hub& hub, int timeout_ms);
  std::uint64_t restore(Hub& hub, const char* path, int timeout_ms);

  // Returns early, with `done` false, at the deadline and when a signal was caught.
  int poll(std::uint64_t number, int timeout_ms, bool& done);
  int wait(std::uint64_t number, int timeout_ms);
  int cancel(std::uint64_t number);

  // Throws Failure when the system has no descriptor.
  int event_fd();

  void leave();
  void abort() noexcept;

  pid_t owner() const { return owner_; }
  bool is_forked_copy() const { return getpid() != owner_; }

  // In a forked child: whether its copy can be destroyed. It cannot if another thread was changing
  // the tables at the fork; then unmaps the memory and closes the descriptors alone.
  bool close_forked_copy();

  int fail(int code, std::string message) noexcept {
    return failures_.set(code, std::move(message));
  }
  const LastFailure& last_failure() const { return failures_.last(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // session.cc
  Lock enter();
  int start(Lock& lock, const Collective& collective, const Wanted& wanted, std::uint64_t& number);
  void copy_in(Lock& lock, const Request& request);
  void publish(Request& request);
  void ring_daemon();
  int report(Lock& lock, Request& request);
  void withdraw(Request& request);
  void give_up(std::uint64_t number, const Deadline& deadline);
  void end_abandoned();
  int unknown(std::uint64_t number);

  // session_hub.cc
  // What a rank tells all others: how a call goes on there, and what it is about.
  struct Said {
    std::int64_t code = GRADCUBE_OK;
    std::uint64_t value = 0;  // a digest, or a step
    std::uint64_t generation = 0;
    std::uint64_t has = 0;  // what the rank has; or which of the steps of a call this is
  };
  std::vector<Said> gather(const Said& own, const Deadline& deadline);
  void ask_for_hub(Hub& hub, const Deadline& deadline);
  void let_go_of(Hub& hub);
  void take_hub(const shared::Notice& notice, Descriptor weights);
  int end_push(Lock& lock, const Push& push, int code);
  static void settle(const Push& push, int code);
  int fail_if_ended(const Hub& hub);
  int no_weights(const Hub::Key& key);
  int no_memory();
  int no_key(const Hub& hub, std::size_t place);
  static std::uint64_t tag_of(const Hub& hub, const PushWish& wish);
  std::uint64_t steps_after(const Hub& hub, const Hub::Key& key, const PushWish& wish) const;
  std::string problem_of_rate(const Hub& hub, const PushWish& wish) const;
  static std::string text_of_push(const Request& request);

  // While it lives the hub is not freed, though another thread asks for that: one that has given up
  // a call, as Python's does on Ctrl-C.
  class HubCall {
   public:
    HubCall(Session& session, Hub& hub);
    ~HubCall();
    HubCall(const HubCall&) = delete;
    HubCall& operator=(const HubCall&) = delete;

   private:
    Session& session_;
    Hub& hub_;
  };

  // session_checkpoint.cc. The first trainer of each server has the files of all of them; of a hub
  // with an aggregator rank 0 has the one file.
  bool has_files(const Hub& hub) const {
    return hub.has_aggregator() ? place_.rank == 0 : place_.rank % trainers_ == 0;
  }
  CheckpointFile own_file(const Hub& hub, const CheckpointVersion& version) const;
  void may_change(const Hub& hub);
  void may_save(const Hub& hub);
  // What this rank does of a call, and what it says to the others of how that went.
  struct Attempt {
    template <typename Act>  // act(said)
    Attempt(const Said& about, const Act& act) : said(about) {
      try {
        act(said);
      } catch (const Failure& its) {
        failure = its;
      } catch (const std::exception& its) {
        failure = Failure(GRADCUBE_ENOMEM, its.what());
      }
      if (failure.has_value()) said.code = failure->code();
    }
    Said said;
    std::optional<Failure> failure;
  };
  static void require_all(const Attempt& own, const std::vector<Said>& all,
                          const std::string& what);
  // What all have said. Throws the first failure.
  std::vector<Said> agree(const Attempt& own, const std::string& what, const Deadline& deadline);
  void require_alike(const std::vector<Said>& said, const Said& own) const;
  void make_all(HubSaving* saving, std::uint64_t step, const Deadline& deadline);
  static void replace(Hub& hub, const HubSaving& saving);

  // session_restore.cc
  Attempt offer(const Hub& hub, const std::string& base,
                const std::optional<CheckpointVersion>& before);
  static void require_one_run(const std::vector<Said>& said, const std::string& what);
  void take_over(Hub& hub, const std::string& base, std::vector<CheckpointFile> files);
  [[noreturn]] static void refuse_missing(const std::vector<Said>& newest, std::size_t rank,
                                          const std::string& what, const std::string& base);
  std::optional<CheckpointVersion> newest_of_all(const Hub& hub, const std::string& base,
                                                 const Deadline& deadline);
  HubParts take_parts(const Hub& hub, const std::string& base,
                      const CheckpointVersion& version) const;
  void push_restored(Hub& hub, HubParts* parts, const Deadline& deadline);

  // session_planes.cc: of a hub with an aggregator. has_files: as above.
  std::optional<HubCopy> save_planes(Hub& hub, const Deadline& deadline);
  void load_planes(Hub& hub, HubParts* parts, const Deadline& deadline);
  void push_planes(Hub& hub, const PlanePushes& pushes, const Deadline& deadline);
  bool set_copies(Hub& hub, bool copies);
  void push_plane(Hub& hub, const PlanePushes& pushes, unsigned plane, std::size_t first,
                  const std::vector<std::byte*>& blocks, const Deadline& deadline);

  // session_memory.cc
  void* allocate(Lock& lock, std::size_t bytes);
  int out_of_heap(std::size_t bytes);
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

  // session_listen.cc
  void look();
  void reap();
  void take(const shared::Completion& completion);
  void end(Request& request, int code, std::string message);
  std::string why_unfitting(const Request& request, std::uint32_t other_dtype) const;
  std::string why_too_far(const Request& request) const;
  void call_served();
  void listen();
  void lose(int code, std::string message);
  void lose_daemon();
  void lose_ring(const char* what);
  void update_events();

  Connection connection_;
  Offering offering_;
  Region region_;
  Admission admission_;
  const Place place_;
  const unsigned trainers_;  // of the job, on each server
  const std::string job_;
  Heap heap_;
  PrivateInChild private_in_child_;
  Sleeper sleeper_;
  Failures failures_;
  const pid_t owner_ = getpid();  // the process that opened the session
  std::atomic<bool> aborted_{false};

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
  // The daemon's word on a hub that was asked for.
  struct HubAnswer {
    shared::Notice notice;
    Descriptor weights;
  };
  std::optional<HubAnswer> hub_answer_;
  bool hub_pending_ = false;  // it was asked for, and the daemon has not answered
  std::uint32_t hubs_ = 0;    // that were asked for
  Hub* hub_ = nullptr;        // the job's
  // Of this and earlier hubs, into which callers have pointers.
  std::vector<std::shared_ptr<HubMapping>> shown_;
  std::uint64_t next_number_ = 1;
  std::array<std::uint64_t, shared::kMaxLanes> submitted_{};  // by lane
  bool ring_is_open_ = true;  // false: lost, and the completion ring is no longer read
  int lost_code_ = GRADCUBE_OK;
  std::string lost_message_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_SESSION_H_
