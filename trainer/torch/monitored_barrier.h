// A barrier that names the ranks that do not come to it, and after which the group is as before.
//
// It consists of messages (notes.h), so that a rank that never comes leaves the group's collectives
// as they were. Each call of rank 0 is a barrier, and has a number. The other ranks cannot know it:
// nobody can tell a rank that is late for a barrier from one that comes to the next. So
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
// Threads. Any thread calls; one at a time is in a barrier. A signal's handler, which runs in the
// midst of a thread's barrier, is refused, and so is a forked child, where another thread may have
// been in one.
#ifndef GRADCUBE_TRAINER_TORCH_MONITORED_BARRIER_H_
#define GRADCUBE_TRAINER_TORCH_MONITORED_BARRIER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/torch/notes.h"
#include "trainer/torch/progress.h"

namespace gradcube::pytorch {

class MonitoredBarrier {
 public:
  // In a group of two ranks or more.
  MonitoredBarrier(std::shared_ptr<Progress> progress, int rank, int size, std::uint64_t tag);

  // Returns when all ranks have come. Throws std::runtime_error when the time is up: on rank 0 it
  // names the first rank that did not come, or all of them.
  void pass(std::chrono::milliseconds timeout, bool names_all);

 private:
  // Of one barrier, what rank 0 knows of each rank.
  struct Attendance {
    std::vector<bool> asked;
    std::vector<bool> present;
  };

  void lead(std::chrono::milliseconds timeout, bool names_all);
  bool gather(std::uint64_t barrier, Attendance& attendance, Clock::time_point deadline);
  std::vector<Notes::Sent> tell(const Attendance& attendance, std::uint64_t number);
  void follow(std::chrono::milliseconds timeout);
  std::string missing(const Attendance& attendance, bool names_all) const;

  const std::shared_ptr<Progress> progress_;
  const int rank_;
  const int size_;
  std::atomic<std::thread::id> inside_{};  // the thread that is in a barrier
  std::mutex mutex_;                       // guards all below
  Notes notes_;
  std::uint64_t barriers_ = 0;  // that rank 0 has begun
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_MONITORED_BARRIER_H_
