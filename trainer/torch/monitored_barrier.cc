#include "trainer/torch/monitored_barrier.h"

#include <stdexcept>
#include <utility>

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

}  // namespace

MonitoredBarrier::MonitoredBarrier(std::shared_ptr<Progress> progress, int rank, int size,
                                   std::uint64_t tag)
    : progress_(std::move(progress)), rank_(rank), size_(size), notes_(progress_, tag) {}

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
  const auto ranks = static_cast<std::size_t>(size_);
  Attendance attendance{std::vector<bool>(ranks), std::vector<bool>(ranks)};
  std::string reason = "they have not called it";
  bool have_all_come = false;
  try {
    have_all_come = gather(barrier, attendance, deadline);
  } catch (const std::runtime_error& error) {
    reason = error.what();
  } catch (...) {  // a signal's handler has raised something
    tell(attendance, number_of(NoteType::given_up, barrier));
    throw;
  }
  if (have_all_come) {
    notes_.wait_for(tell(attendance, number_of(NoteType::passed, barrier)), deadline);
    return;
  }
  tell(attendance, number_of(NoteType::given_up, barrier));
  const std::string names = missing(attendance, names_all);
  const bool are_several = names.find(',') != std::string::npos;
  throw std::runtime_error((are_several ? "Ranks " : "Rank ") + names +
                           " failed to pass monitoredBarrier in " +
                           std::to_string(timeout.count()) + " ms: " + reason);
}

// Whether all ranks came.
bool MonitoredBarrier::gather(std::uint64_t barrier, Attendance& attendance,
                              Clock::time_point deadline) {
  for (int rank = 1; rank < size_; ++rank) notes_.listen(rank);
  for (int absent = size_ - 1; absent > 0;) {
    const auto note = notes_.next(deadline);
    if (!note.has_value()) return false;
    const auto rank = static_cast<std::size_t>(note->from);
    if (note->number == number_of(NoteType::presence, barrier)) {
      attendance.present[rank] = true;
      --absent;
      continue;
    }
    if (!attendance.asked[rank]) notes_.send(note->from, number_of(NoteType::question, barrier));
    attendance.asked[rank] = true;
    notes_.listen(note->from);
  }
  return true;
}

// All that are present.
std::vector<Notes::Sent> MonitoredBarrier::tell(const Attendance& attendance,
                                                std::uint64_t number) {
  std::vector<Notes::Sent> sent;
  for (int rank = 1; rank < size_; ++rank) {
    if (attendance.present[static_cast<std::size_t>(rank)]) {
      sent.push_back(notes_.send(rank, number));
    }
  }
  return sent;
}

void MonitoredBarrier::follow(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = deadline_after(timeout);
  std::uint64_t answered = 0;  // the last barrier whose question it has answered
  notes_.send(0, number_of(NoteType::arrival, 0));
  notes_.listen(0);
  while (const auto note = notes_.next(deadline)) {
    const std::uint64_t barrier = note->number >> kTypeBits;
    const NoteType type = type_of(note->number);
    if (type == NoteType::passed && barrier == answered) return;
    if (type == NoteType::given_up && barrier == answered) {
      throw std::runtime_error("rank 0 has given it up, because other ranks did not come");
    }
    if (type == NoteType::question) {
      notes_.send(0, number_of(NoteType::presence, barrier));
      answered = barrier;
    }
    notes_.listen(0);
  }
  throw std::runtime_error("nothing has come from it in " + std::to_string(timeout.count()) +
                           " ms");
}

// The ranks that are not present, or the first of them alone.
std::string MonitoredBarrier::missing(const Attendance& attendance, bool names_all) const {
  std::string names;
  for (int rank = 1; rank < size_ && (names.empty() || names_all); ++rank) {
    if (attendance.present[static_cast<std::size_t>(rank)]) continue;
    names += (names.empty() ? "" : ", ") + std::to_string(rank);
  }
  return names;
}

}  // namespace gradcube::pytorch
