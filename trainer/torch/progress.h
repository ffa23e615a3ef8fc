// Submits what a process group asks for, and waits for its ends on a thread of its own, the
// progress thread.
//
// A Task is one call of the process group: one request to the session, or several, such as the
// messages of an all-to-all. It is told its end once: when all of its requests have ended, or at
// the first failure of one.
//
// Where its time is up, or the session refuses one of its requests, its messages are withdrawn:
// what has not met the other rank's gives and takes nothing. It is told when they have ended; if it
// was only late and all have ended well after all, it has, too. A message that was under way is
// waited for, but not for long; then the failure says that it is lost.
//
// Collectives go on after the end, because the other ranks count on them, as do messages after the
// failure of another one: withdrawn, other ranks would wait for them in vain. So does a message
// that does not end for long. The task lives until all have ended. But the caller's own memory is
// its own again before it is told, to be written or given back: what goes on gives the others what
// was submitted, and what it brings is written nowhere. Where the daemon works on that memory where
// it lies, or what waits is yet to read it, the job is left before the caller is told.
//
// A call of all ranks goes on, too, once a signal has ended the wait for it, and can be waited for
// again:
// - Where others may be given what the caller writes to its memory, the job is left before the
//   caller goes on.
// - Elsewhere the result is written to it at any time. A later call that reads or writes it, be it
//   by copies, is refused in all groups of this process, until it has ended well and was waited for
//   again, or its group has ended; as others' collective would meet the next one, the group of a
//   collective ends. Its end changes nothing: what the caller has written since may be gone then.
//
// Threads. Any thread submits, and the order of submissions is that in which they take a mutex: the
// caller's thread copies what has to be staged. The progress thread alone looks for ends. It sleeps
// on the session's event descriptor, calls Task::ended with no lock held, and never takes Python's
// interpreter lock; what `ended` runs may. Signals are blocked on it, but not while that runs.
//
// A request may have to wait for what else its call does, such as copies from a device: a Gate says
// when it may begin. No later request of its kind overtakes it. While one waits the thread looks
// every kGateInterval, and every kGateIntervalOfTold where its task has failed: a device's events
// ring no bell.
//
// Where the gate takes one message, the task's requests are receives of which one is to bring
// something: the first message ends it, well or not, and the others are withdrawn before it is
// told. What is under way then is waited for until the task's time is up, as a later receive must
// get it first. What cannot come, because its rank has left, matters where nothing comes at all.
//
// More than kMostInFlight sends, receives or collectives wait here, each kind in its own order: so
// sends that wait for their receives leave room for those.
//
// What `ended` runs may submit another task and wait for its end, as PyTorch's PowerSGD hook does.
// So with the submission, or before it waits, the thread gives its role to a new one: it runs
// `ended` to its end, and is joined later. So it is while the group stops, too.
//
// Errors of requests go to `ended`. submit() throws std::runtime_error in a forked child and after
// stop().
#ifndef GRADCUBE_TRAINER_TORCH_PROGRESS_H_
#define GRADCUBE_TRAINER_TORCH_PROGRESS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "trainer/torch/session.h"
#include "trainer/torch/tensors.h"

#include "gradcube/gradcube.h"

namespace gradcube::pytorch {

using Clock = std::chrono::steady_clock;

// A clock cannot be told to wait for as long as a caller may ask for.
inline Clock::time_point deadline_after(std::chrono::milliseconds timeout) {
  constexpr std::chrono::hours kLongest(24 * 3650);
  return Clock::now() + std::min<std::chrono::milliseconds>(timeout, kLongest);
}

inline constexpr const char* kStopped = "this process group was destroyed: make another one";

// Why a task's time is up; what the daemon knows follows.
inline constexpr const char* kTimeout = "the timeout has passed: ";
inline constexpr const char* kInterrupted = "a signal has ended a wait(), which withdraws this: ";

// A message whose receiver must get as many bytes as it has room for.
struct Message {
  gradcube_message message = GRADCUBE_MESSAGE_INIT;
  std::size_t received = 0;
};

using Request = std::variant<gradcube_collective, Message>;

// What else the requests of a task depend on.
class Gate {
 public:
  virtual ~Gate() = default;
  // Whether the task's request at this place may begin. With the order of submissions held. A
  // std::exception is why it never can: a message fails, and a collective, without which later ones
  // would meet the wrong ones of other ranks, ends the group.
  virtual bool is_open(std::size_t place) = 0;
  // It has ended well. On the progress thread.
  virtual void has_ended(std::size_t place) = 0;
  virtual bool takes_one_message() const { return false; }
};

class Task {
 public:
  // Gets the reason of a failure, or an empty text.
  using Ended = std::function<void(const std::string& failure)>;

  // One request or more. A null gate is always open. `lent`: what the requests use of the caller's
  // own memory, and not of copies; `touched`: that, and what the call's copies use.
  Task(std::vector<Request> requests, Clock::time_point deadline, Ended ended,
       std::shared_ptr<Gate> gate = nullptr, std::vector<Span> lent = {},
       std::vector<Span> touched = {})
      : requests_(std::move(requests)),
        deadline_(deadline),
        ended_(std::move(ended)),
        gate_(std::move(gate)),
        lent_(std::move(lent)),
        touched_(std::move(touched)) {}

 private:
  friend class Progress;

  std::vector<Request> requests_;  // does not grow: the library writes to them
  // Guarded by Progress::mutex_.
  Clock::time_point deadline_;
  const char* late_ = kTimeout;  // why its time is up
  // Of the progress thread; the first two are set before the task is submitted.
  std::size_t open_ = 0;                // requests that have not ended
  std::size_t messages_ = 0;            // of those, that can be withdrawn
  std::optional<std::string> failure_;  // or why it was late
  bool broken_ = false;                 // not all of its requests have ended well
  bool has_one_ = false;                // of those of which one is enough
  bool has_met_ = false;                // one of those has met the other rank's, and has ended
  std::string lost_;                    // why that one has not come
  Clock::time_point patience_;          // of one with a failure: how long its messages may take
  bool told_ = false;                   // or about to be
  Ended ended_;
  const std::shared_ptr<Gate> gate_;
  const std::vector<Span> lent_;
  const std::vector<Span> touched_;
};

class Progress : public std::enable_shared_from_this<Progress> {
 public:
  // Starts the thread. Throws std::runtime_error when the system has no descriptor.
  static std::shared_ptr<Progress> start(std::shared_ptr<Session> session);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void submit(const std::shared_ptr<Task>& task);

  // Throws where one of these spans, which a call reads or writes, may be written to by a call that
  // was abandoned; if that call is a collective, the group ends. Before submit(), and before the
  // call writes to any of them.
  void refuse_late(const std::vector<Span>& touched, bool is_collective);

  // Throws in a forked child, in which nothing goes on.
  void check_process() const;

  // For a thread that is going to wait for a task's end: if it is the progress thread, another one
  // becomes it. Throws std::system_error where the system has no thread: the job is left then.
  void hand_over();

  // A collective could not be made on this rank, so others' would meet its next one: the group
  // ends, on all of them.
  void lose_order(const std::string& why);

  // Its time is up now: if it has not ended, it soon fails, with why and who is missing.
  void expire(const std::shared_ptr<Task>& task, const char* why);

  // A signal has ended the wait for this call of all ranks, which goes on. True: others may be
  // given what the caller writes to its tensors from now on, so the group ends, and the caller
  // waits for the task's end before it goes on.
  bool abandon(const std::shared_ptr<Task>& task, const std::string& why);
  // It has ended well, and was waited for after that.
  void take_back(const std::shared_ptr<Task>& task);

  // Leaves the job, and fails all tasks that have not ended. Returns when all threads have ended,
  // or at once if one of them calls it. A second call changes nothing.
  void stop();
  // Leaves the job, but fails no task: who waits for one would come back to an interpreter that
  // ends, and so sleeps on. So does who submits one later. Not so the threads that the interpreter
  // waits for. Returns when no more task can end, or after a while if one of them does not come to
  // its end.
  void stop_at_exit();
  // Of a wait, now and then: throws after that, on a thread that the interpreter waits for.
  void check_exit();
  // Whether one of these two was called.
  bool has_stopped();

 private:
  struct Flight {
    std::shared_ptr<Task> task;
    std::size_t place = 0;      // among the task's requests
    std::uint64_t request = 0;  // 0: it was refused
    std::string refusal;
    bool withdrawn = false;  // the session was asked to
  };
  using TaskPointer = std::shared_ptr<Task>;
  // A request that waits for room.
  struct Waiting {
    TaskPointer task;
    std::size_t place = 0;
  };
  static constexpr std::size_t kSends = 0, kReceives = 1, kCollectives = 2, kKinds = 3;
  struct Ending {
    TaskPointer task;
    std::string failure;
  };

  explicit Progress(std::shared_ptr<Session> session);

  // With order_ held:
  bool start_request(const TaskPointer& task, std::size_t place);
  bool is_open(const TaskPointer& task, std::size_t place, std::string& refusal);
  bool loses_order(const Request& request, int code, bool others_are_in_flight);
  int submit_one(Request& request, std::uint64_t& number);
  void add(Flight flight);
  bool is_read_later(const TaskPointer& task);
  bool reads_what_waits(const TaskPointer& task);  // with order_ held

  // Of the progress thread:
  void run();
  bool take_arrivals();
  void look_for_ends();
  void start_waiting();
  void look_for_timeouts();
  void withdraw_failing();
  void forget_waiting();
  const char* why_late(const Task& task, Clock::time_point now);
  static Clock::time_point last_moment(const Task& task);  // with mutex_ held
  std::vector<TaskPointer> tasks_waiting();
  void sleep();
  void end_by(const Flight& flight, int code);
  void end(const Flight& flight, const std::string& failure, bool has_met);
  static std::string why_none_came(const Task& task, const std::string& failure);
  void end_one_of_many(const Flight& flight, const std::string& failure, bool has_met);
  void fail(const TaskPointer& task, const std::string& failure);
  bool may_tell();
  void let_go_of_memory();
  bool is_let_go(const TaskPointer& task);  // with order_ held
  static bool is_lent(const Task& task, std::size_t place);
  void add_ending(const TaskPointer& task, const std::string& failure);
  bool tell_endings();
  void retire();
  void fail_all();

  void wake();
  void join_retired();  // with mutex_ held
  static std::size_t kind_of(const Request& request);

  const std::shared_ptr<Session> session_;
  sigset_t starters_signals_{};  // those blocked on the thread that has called start()
  const int event_fd_;
  const int wake_fd_;

  std::mutex order_;  // held while requests are submitted; taken before mutex_
  std::array<std::deque<Waiting>, kKinds> waiting_;  // guarded by order_
  std::array<std::atomic<unsigned>, kKinds> in_flight_{};
  // Whether there are any: a thread that copies a tensor holds order_ for long.
  std::atomic<bool> some_wait_{false};
  std::atomic<bool> at_exit_{false};

  std::mutex mutex_;  // guards all below
  std::vector<Flight> arrivals_;
  // Until when the progress thread sleeps, unless a request ends; the maximum: also if one does.
  // None: it is awake, and looks at arrivals_ before it sleeps.
  std::optional<Clock::time_point> sleeps_until_;
  bool stopping_ = false;
  std::string ruin_;  // why the group ends by itself; empty: it does not
  bool has_left_ = false;
  std::condition_variable left_;
  bool is_detached_ = false;              // nobody joins threads any more
  std::thread thread_;                    // the progress thread
  std::vector<std::thread> former_;       // those that were it
  std::vector<std::thread::id> retired_;  // of former_, those that touch nothing any more

  // Of the progress thread:
  std::vector<Flight> flights_;
  std::vector<TaskPointer> failing_;  // those with a failure that are not told
  bool withdraws_again_ = false;      // the session could not take all
  // How soon to look again at what is the first to wait; zero: no gate is closed before it.
  Clock::duration gate_interval_{0};
  std::deque<Ending> endings_;  // to be told
  // wake_fd_ was readable. A wake() that comes later ends the next sleep.
  bool is_woken_ = false;
  // The session's descriptor was readable: as nothing is in flight, for a reason that lasts, such
  // as a daemon that has ended. Then the thread does not listen to it until the next request.
  bool rang_ = false;
  bool rang_in_vain_ = false;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_PROGRESS_H_
