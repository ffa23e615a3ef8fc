#include "trainer/torch/monitored_barrier.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/torch/interpreter.h"

namespace gradcube::pytorch {
namespace {

enum class NoteType : std::uint64_t { arrival, question, presence, passed, given_up };

// As a note carries them. The first barrier has number 1.
constexpr std::uint64_t kTypeBits = 3;

std::uint64_t number_of(NoteType type, std::uint64_t barrier) {
  return barrier << kTypeBits | static_cast<std::uint64_t>(type);
}

NoteType type_of(std::uint64_t number) {
  return static_cast<NoteType>(number & ((std::uint64_t{1} << kTypeBits) - 1));
}

class Inside {
 public:
  explicit Inside(std::atomic<std::thread::id>& thread) : thread_(thread) {
    thread_ = std::this_thread::get_id();
  }
  ~Inside() { thread_ = std::thread::id(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic<std::thread::id>& thread_;
};

// The ranks that are not present, or the first of them alone.
std::string missing(const std::vector<bool>& present, bool names_all) {
  std::string names;
  for (std::size_t rank = 1; rank < present.size() && (names.empty() || names_all); ++rank) {
    if (!present[rank]) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  }
  return names;
}

}  // namespace

MonitoredBarrier::MonitoredBarrier(std::shared_ptr<Progress> progress, int rank, int size,
                                   std::uint64_t tag)
    : progress_(std::move(progress)), rank_(rank), size_(size), tag_(tag) {}

void MonitoredBarrier::pass(std::chrono::milliseconds timeout, bool names_all) {
  progress_->check_process();
  if (inside_ == std::this_thread::get_id()) {
    throw std::runtime_error(
        "a signal's handler has called a monitored barrier in the midst of another one: expected "
        "one after the other");
  }
  progress_->hand_over();  // a callback's barrier waits here for one that others are in
  const std::lock_guard<std::mutex> lock(mutex_);
  const Inside scope(inside_);
  if (rank_ == 0) return lead(timeout, names_all);
  // Programs may look for the words in which gloo reports this, so they are the same.
  try {
    follow(timeout);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("Rank " + std::to_string(rank_) +
                             " successfully reached monitoredBarrier, but received errors while "
                             "waiting for send/recv from rank 0: " +
                             error.what());
  }
}

void MonitoredBarrier::lead(std::chrono::milliseconds timeout, bool names_all) {
  const Clock::time_point deadline = deadline_after(timeout);
  const std::uint64_t barrier = ++barriers_;
  std::vector<bool> present(static_cast<std::size_t>(size_));
  std::string reason = "they have not called it";
  bool have_all_come = false;
  try {
    have_all_come = gather(barrier, present, deadline);
  } catch (const std::runtime_error& error) {
    reason = error.what();
  } catch (...) {  // a signal's handler has raised something
    tell(present, number_of(NoteType::given_up, barrier));
    throw;
  }
  if (have_all_come) {
    const std::vector<Sent> sent = tell(present, number_of(NoteType::passed, barrier));
    wait(deadline, [&sent] {
      return std::all_of(sent.begin(), sent.end(), [](const Sent& one) { return *one; });
    });
    return;
  }
  tell(present, number_of(NoteType::given_up, barrier));
  const std::string names = missing(present, names_all);
  const bool are_several = names.find(',') != std::string::npos;
  throw std::runtime_error((are_several ? "Ranks " : "Rank ") + names +
                           " failed to pass monitoredBarrier in " +
                           std::to_string(timeout.count()) + " ms: " + reason);
}

// Whether all ranks came.
bool MonitoredBarrier::gather(std::uint64_t barrier, std::vector<bool>& present,
                              Clock::time_point deadline) {
  std::vector<bool> asked(present.size());
  for (int rank = 1; rank < size_; ++rank) listen(rank);
  for (int absent = size_ - 1; absent > 0;) {
    const auto note = next(deadline);
    if (!note.has_value()) return false;
    const auto rank = static_cast<std::size_t>(note->from);
    if (note->number == number_of(NoteType::presence, barrier)) {
      present[rank] = true;
      --absent;
      continue;
    }
    if (!asked[rank]) send(note->from, number_of(NoteType::question, barrier));
    asked[rank] = true;
    listen(note->from);
  }
  return true;
}

// All that are present.
std::vector<MonitoredBarrier::Sent> MonitoredBarrier::tell(const std::vector<bool>& present,
                                                           std::uint64_t number) {
  std::vector<Sent> sent;
  for (int rank = 1; rank < size_; ++rank) {
    if (present[static_cast<std::size_t>(rank)]) sent.push_back(send(rank, number));
  }
  return sent;
}

void MonitoredBarrier::follow(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = deadline_after(timeout);
  std::uint64_t answered = 0;  // the last barrier whose question it has answered
  send(0, number_of(NoteType::arrival, 0));
  listen(0);
  while (const auto note = next(deadline)) {
    const std::uint64_t barrier = note->number >> kTypeBits;
    const NoteType type = type_of(note->number);
    if (type == NoteType::passed && barrier == answered) return;
    if (type == NoteType::given_up && barrier == answered) {
      throw std::runtime_error("rank 0 has given it up, because other ranks did not come");
    }
    if (type == NoteType::question) {
      send(0, number_of(NoteType::presence, barrier));
      answered = barrier;
    }
    listen(0);
  }
  throw std::runtime_error("nothing has come from it in " + std::to_string(timeout.count()) +
                           " ms");
}

// `ended` owns the number, and lives until the message has ended.
void MonitoredBarrier::submit(gradcube_direction direction, int peer,
                              const std::shared_ptr<std::uint64_t>& number, Task::Ended ended) {
  Message request;
  request.message.direction = direction;
  request.message.peer = static_cast<unsigned>(peer);
  request.message.buffer = number.get();
  request.message.bytes = sizeof(*number);
  request.message.tag = tag_;
  progress_->submit(std::make_shared<Task>(std::vector<Request>{request}, Clock::time_point::max(),
                                           std::move(ended)));
}

MonitoredBarrier::Sent MonitoredBarrier::send(int to, std::uint64_t number) {
  const auto sent = std::make_shared<bool>(false);
  const auto memory = std::make_shared<std::uint64_t>(number);
  submit(GRADCUBE_SEND, to, memory, [box = box_, sent, memory](const std::string& failure) {
    const std::lock_guard<std::mutex> lock(box->mutex);
    *sent = true;
    if (!failure.empty()) box->notes.push_back({-1, 0, failure});
    box->changed.notify_all();
  });
  return sent;
}

// The next note of this rank is to be received, too.
void MonitoredBarrier::listen(int from) {
  if (!listening_.insert(from).second) return;
  const auto memory = std::make_shared<std::uint64_t>(0);
  submit(GRADCUBE_RECEIVE, from, memory, [box = box_, from, memory](const std::string& failure) {
    const std::lock_guard<std::mutex> lock(box->mutex);
    box->notes.push_back({from, *memory, failure});
    box->changed.notify_all();
  });
}

// Of the ranks that it listens to, and to that rank no more. None: the deadline has passed. Throws
// std::runtime_error, with the reason why a note cannot be sent or received.
std::optional<MonitoredBarrier::Note> MonitoredBarrier::next(Clock::time_point deadline) {
  Note note;
  if (!wait(deadline, [this] { return !box_->notes.empty(); })) return std::nullopt;
  {
    const std::lock_guard<std::mutex> lock(box_->mutex);
    note = std::move(box_->notes.front());
    box_->notes.pop_front();
  }
  listening_.erase(note.from);
  if (!note.failure.empty()) throw std::runtime_error(note.failure);
  return note;
}

// False: the deadline has passed.
bool MonitoredBarrier::wait(Clock::time_point deadline, const std::function<bool()>& is_over) {
  progress_->check_process();
  progress_->hand_over();
  std::unique_lock<std::mutex> lock(box_->mutex);
  while (!is_over()) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return false;
    box_->changed.wait_until(lock, std::min(deadline, now + kSignalInterval), is_over);
    if (is_over()) break;
    lock.unlock();
    handle_signals();
    lock.lock();
  }
  return true;
}

}  // namespace gradcube::pytorch
