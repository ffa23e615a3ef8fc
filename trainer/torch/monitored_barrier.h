// A barrier that names the ranks that do not come to it, and after which the group is as before.
//
// It consists of notes, messages of one number in a space of tags of their own, so that a rank that
// never comes leaves the group's collectives as they were. Each call of rank 0 is a barrier, and
// has a number. The other ranks cannot know it: nobody can tell a rank that is late for a barrier
// from one that comes to the next. So
//
//   rank r: arrival                 it has come
//   rank 0: question, number        is r still here? Asked once in a barrier, when anything but its
//                                   presence in this one has come from r
//   rank r: presence, number        it is. Only a rank that waits in a call says so, so what it has
//                                   sent in a call that it left counts for no barrier
//   rank 0: passed, number          all are here
//   or      given up, number        somebody is not: the call of each rank that was here fails
//
// A rank ignores the last two unless it has answered this barrier's question in the same call. One
// that came too late for a barrier waits on for the next.
//
// A rank that waits alone and leaves, time and again, leaves one message of the group behind each
// time, until rank 0 comes.
//
// Notes from one rank come in the order in which it has sent them. There is at most one receive
// from each rank at a time. One that has no note yet stays when nobody waits any more: its note is
// the next barrier's.
//
// Threads. Any thread calls; one at a time is in a barrier. A signal's handler, which runs in the
// midst of a thread's barrier, is refused, and so is a forked child, where another thread may have
// been in one. The progress thread delivers notes; if it is the caller itself, a wait gives its
// role to another one first. A wait ends early with what a handler of a signal raises.
#ifndef GRADCUBE_TRAINER_TORCH_MONITORED_BARRIER_H_
#define GRADCUBE_TRAINER_TORCH_MONITORED_BARRIER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/torch/progress.h"

namespace gradcube::pytorch {

class MonitoredBarrier {
 public:
  // In a group of two ranks or more. No other message of the job has the tag.
  MonitoredBarrier(std::shared_ptr<Progress> progress, int rank, int size, std::uint64_t tag);

  // Returns when all ranks have come. Throws std::runtime_error when the time is up: on rank 0 it
  // names the first rank that did not come, or all of them.
  void pass(std::chrono::milliseconds timeout, bool names_all);

 private:
  struct Note {
    int from = -1;  // -1: it is this rank's own, which could not be sent
    std::uint64_t number = 0;
    std::string failure;  // why it was not sent, or not received
  };
  // What the ends of messages are told, also when this is there no more.
  struct Box {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Note> notes;  // guarded by mutex, as what each Sent points to
  };
  // Of a note: true once its receiver has it, or it has failed.
  using Sent = std::shared_ptr<bool>;

  void lead(std::chrono::milliseconds timeout, bool names_all);
  bool gather(std::uint64_t barrier, std::vector<bool>& present, Clock::time_point deadline);
  std::vector<Sent> tell(const std::vector<bool>& present, std::uint64_t number);
  void follow(std::chrono::milliseconds timeout);

  Sent send(int to, std::uint64_t number);
  void listen(int from);
  std::optional<Note> next(Clock::time_point deadline);
  void submit(gradcube_direction direction, int peer, const std::shared_ptr<std::uint64_t>& number,
              Task::Ended ended);
  bool wait(Clock::time_point deadline, const std::function<bool()>& is_over);

  const std::shared_ptr<Progress> progress_;
  const int rank_;
  const int size_;
  const std::uint64_t tag_;
  const std::shared_ptr<Box> box_ = std::make_shared<Box>();
  std::atomic<std::thread::id> inside_{};  // the thread that is in a barrier
  std::mutex mutex_;                       // guards all below
  std::set<int> listening_;                // to these ranks
  std::uint64_t barriers_ = 0;             // that rank 0 has begun
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_MONITORED_BARRIER_H_
