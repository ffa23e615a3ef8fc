// Numbers that ranks of a process group send each other, beside its other messages and in a space
// of tags of their own: what a monitored barrier consists of.
//
// Those from one rank come in the order in which it has sent them. A receive that has no number yet
// stays when nobody waits any more: its number is among the next that are asked for. There is at
// most one receive from each rank at a time.
//
// Threads. One thread at a time calls; the progress thread delivers. If it is the caller
// itself, next() and wait_for() give its role to another one first.
//
// Errors are std::runtime_error, with the reason why a number cannot be sent or received. A wait
// ends early with what a handler of a signal raises.
#ifndef GRADCUBE_TRAINER_TORCH_NOTES_H_
#define GRADCUBE_TRAINER_TORCH_NOTES_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/torch/progress.h"

namespace gradcube::pytorch {

struct Note {
  int from = 0;
  std::uint64_t number = 0;
};

class Notes {
 public:
  // A note that was sent; true once its receiver has it, or it has failed.
  using Sent = std::shared_ptr<bool>;

  // `progress` is not null. No other message of the job has the tag.
  Notes(std::shared_ptr<Progress> progress, std::uint64_t tag);

  Sent send(int to, std::uint64_t number);

  // The next number of this rank is to be received, too.
  void listen(int from);

  // The next number of the ranks that it listens to, and to that rank no more. None: the deadline
  // has passed.
  std::optional<Note> next(Clock::time_point deadline);

  // Until all were received, or the deadline has passed.
  void wait_for(const std::vector<Sent>& sent, Clock::time_point deadline);

 private:
  struct Arrival {
    Note note;  // where a note could not be sent, from no rank
    std::string failure;
  };
  // What the ends of messages are told, also when there are no Notes any more.
  struct Box {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Arrival> arrivals;  // guarded by mutex, as what each Sent points to
  };

  void submit(gradcube_direction direction, int peer, const std::shared_ptr<std::uint64_t>& number,
              Task::Ended ended);
  bool wait(Clock::time_point deadline, const std::function<bool()>& is_over);

  const std::shared_ptr<Progress> progress_;
  const std::uint64_t tag_;
  const std::shared_ptr<Box> box_;
  std::set<int> listening_;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_NOTES_H_
