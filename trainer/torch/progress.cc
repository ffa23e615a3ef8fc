#include "trainer/torch/progress.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "trainer/torch/interpreter.h"
#include "trainer/torch/late_memory.h"
#include "trainer/torch/of_process.h"

namespace gradcube::pytorch {
namespace {

const std::string kOrderIsLost = "this process group has ended, as its order is lost: ";
const std::string kWasLate =
    "a tensor of this call is that of a call whose wait() a signal has ended, and which writes to "
    "it when it ends: expected another one";

// Of each kind: a third of what a session takes.
constexpr unsigned kMostInFlight = 1024 / 3;

// Of the progress thread, while it listens for ends. Requests with later deadlines do not wake it.
constexpr std::chrono::minutes kLongestSleep(1);
constexpr std::chrono::microseconds kGateInterval(50);
constexpr std::chrono::milliseconds kGateIntervalOfTold(5);

int new_wake_fd() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
  return fd;
}

int event_fd_of(const Session& session) {
  const int fd = gradcube_event_fd(session.get());
  if (fd < 0) throw std::runtime_error(session.last_error());
  return fd;
}

timespec time_until(Clock::time_point then) {
  const std::chrono::nanoseconds left = std::max<Clock::duration>(then - Clock::now(), {});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  return {seconds.count(), (left - seconds).count()};
}

}  // namespace

Progress::Progress(std::shared_ptr<Session> session)
    : session_(std::move(session)), event_fd_(event_fd_of(*session_)), wake_fd_(new_wake_fd()) {
  // Whatever is on its way: nothing fails between a request's submission and its entry.
  for (std::vector<Flight>* flights : {&arrivals_, &flights_}) {
    flights->reserve(kKinds * kMostInFlight);
  }
}

Progress::~Progress() { ::close(wake_fd_); }

void Progress::check_process() const {
  if (session_->is_own()) return;
  gradcube_event_fd(session_->get());  // refused, with the message that says why
  throw std::runtime_error(session_->last_error());
}

void Progress::submit(const TaskPointer& task) {
  check_process();
  if (at_exit_ && !is_awaited_at_exit()) sleep_until_exit();
  hand_over();
  task->open_ = task->requests_.size();
  task->messages_ = static_cast<std::size_t>(
      std::count_if(task->requests_.begin(), task->requests_.end(),
                    [](const Request& one) { return kind_of(one) != kCollectives; }));
  const std::lock_guard<std::mutex> order(order_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) throw std::runtime_error(kStopped);
    if (!ruin_.empty()) throw std::runtime_error(ruin_);
  }
  bool waits = false;
  for (std::size_t place = 0; place < task->requests_.size(); ++place) {
    std::deque<Waiting>& waiting = waiting_[kind_of(task->requests_[place])];
    if (waiting.empty() && start_request(task, place)) continue;
    waiting.push_back({task, place});
    waits = true;
  }
  if (!waits) return;
  some_wait_ = true;
  wake();  // all that was in flight may have ended just now
}

void Progress::refuse_late(const std::vector<Span>& touched, bool is_collective) {
  check_process();
  if (!of_process<LateMemory>().has(touched)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_ || !ruin_.empty()) return;  // submit() says so
  if (!is_collective) throw std::runtime_error(kWasLate);
  ruin_ = kOrderIsLost + kWasLate;
  wake();
  throw std::runtime_error(ruin_);
}

std::size_t Progress::kind_of(const Request& request) {
  const auto* message = std::get_if<Message>(&request);
  if (message == nullptr) return kCollectives;
  return message->message.direction == GRADCUBE_RECEIVE ? kReceives : kSends;
}

// False: there is no room at the moment.
bool Progress::start_request(const TaskPointer& task, std::size_t place) {
  Request& request = task->requests_[place];
  std::atomic<unsigned>& in_flight = in_flight_[kind_of(request)];
  if (in_flight >= kMostInFlight) return false;
  Flight flight{task, place, 0, ""};
  if (!is_open(task, place, flight.refusal)) return false;
  if (flight.refusal.empty()) {
    // Looked at first: those that refuse this one may end meanwhile.
    const bool others_are_in_flight = in_flight_[kCollectives] != 0;
    const int code = submit_one(request, flight.request);
    if (code == GRADCUBE_EAGAIN) return false;
    if (code != GRADCUBE_OK && loses_order(request, code, others_are_in_flight)) return false;
    if (code != GRADCUBE_OK) flight.refusal = session_->last_error();
  }
  ++in_flight;
  add(std::move(flight));
  return true;
}

bool Progress::is_open(const TaskPointer& task, std::size_t place, std::string& refusal) {
  if (task->gate_ == nullptr) return true;
  try {
    return task->gate_->is_open(place);
  } catch (const std::exception& error) {
    if (kind_of(task->requests_[place]) != kCollectives) {
      refusal = error.what();
      return true;
    }
    lose_order(error.what());
    return false;
  }
}

// Of a collective that this rank alone cannot begin, though it may be right: other ranks' would be
// added to its next one. Those in flight may leave memory, or have its tensor: they are waited for.
bool Progress::loses_order(const Request& request, int code, bool others_are_in_flight) {
  const bool may_begin_later = code == GRADCUBE_ENOMEM || code == GRADCUBE_EINVAL;
  const bool is_right = may_begin_later || code == GRADCUBE_ENODAEMON;
  if (kind_of(request) != kCollectives || !is_right) return false;
  if (may_begin_later && others_are_in_flight) return true;
  lose_order(session_->last_error());
  return true;
}

// The progress thread leaves the job, which tells the other ranks.
void Progress::lose_order(const std::string& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      if (ruin_.empty()) ruin_ = kOrderIsLost + why;
    } catch (const std::bad_alloc&) {
      ruin_ = "out of memory";  // short enough to need none
    }
  }
  wake();
}

int Progress::submit_one(Request& request, std::uint64_t& number) {
  if (auto* message = std::get_if<Message>(&request); message != nullptr) {
    message->message.received = &message->received;
    return gradcube_submit_message(session_->get(), &message->message, &number);
  }
  return gradcube_submit(session_->get(), &std::get<gradcube_collective>(request), &number);
}

void Progress::add(Flight flight) {
  bool is_to_wake = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Clock::time_point never = Clock::time_point::max();  // it does not listen
    is_to_wake = sleeps_until_.has_value() &&
                 (*sleeps_until_ == never || flight.task->deadline_ < *sleeps_until_ ||
                  !flight.refusal.empty());
    arrivals_.push_back(std::move(flight));
    if (is_to_wake) sleeps_until_.reset();
  }
  if (is_to_wake) wake();
}

void Progress::expire(const TaskPointer& task, const char* why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    task->deadline_ = Clock::now();
    task->late_ = why;
  }
  wake();
}

void Progress::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = ::write(wake_fd_, &one, sizeof(one));
}

// False when the group stops.
bool Progress::take_arrivals() {
  if (std::exchange(is_woken_, false)) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t bytes = ::read(wake_fd_, &rings, sizeof(rings));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  sleeps_until_.reset();
  std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(flights_));
  arrivals_.clear();
  rang_in_vain_ = std::exchange(rang_, false) && flights_.empty();
  return !stopping_ && ruin_.empty();
}

void Progress::start_waiting() {
  gate_interval_ = Clock::duration::zero();
  if (!some_wait_) return;
  const std::lock_guard<std::mutex> order(order_);
  bool some_wait = false;
  for (std::deque<Waiting>& waiting : waiting_) {
    while (!waiting.empty() && start_request(waiting.front().task, waiting.front().place)) {
      waiting.pop_front();
    }
    some_wait = some_wait || !waiting.empty();
    if (waiting.empty() || waiting.front().task->gate_ == nullptr) continue;
    const Task& first = *waiting.front().task;
    if (!first.told_ && !first.failure_.has_value()) {
      gate_interval_ = kGateInterval;
    } else if (gate_interval_ == Clock::duration::zero()) {
      gate_interval_ = kGateIntervalOfTold;
    }
  }
  some_wait_ = some_wait;
}

std::vector<Progress::TaskPointer> Progress::tasks_waiting() {
  if (!some_wait_) return {};
  std::vector<TaskPointer> tasks;
  const std::lock_guard<std::mutex> order(order_);
  for (const std::deque<Waiting>& waiting : waiting_) {
    for (const Waiting& one : waiting) tasks.push_back(one.task);
  }
  return tasks;
}

void Progress::sleep() {
  const std::vector<TaskPointer> waiting = tasks_waiting();
  Clock::time_point until = Clock::time_point::max();
  const bool listens = !flights_.empty() || !rang_in_vain_;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_ || !ruin_.empty() || !arrivals_.empty()) return;
    const auto look = [&until](const TaskPointer& task) {
      if (task->told_) return;
      until = std::min(until, last_moment(*task));
    };
    for (const Flight& flight : flights_) look(flight.task);
    for (const TaskPointer& task : waiting) look(task);
    if (withdraws_again_) until = std::min(until, Clock::now() + std::chrono::milliseconds(1));
    if (gate_interval_ != Clock::duration::zero()) {
      until = std::min(until, Clock::now() + gate_interval_);
    }
    if (listens) until = std::min(until, Clock::now() + kLongestSleep);
    sleeps_until_ = until;
  }
  pollfd descriptors[] = {{wake_fd_, POLLIN, 0}, {event_fd_, POLLIN, 0}};
  const timespec time = time_until(until);
  ::ppoll(descriptors, listens ? 2 : 1, until == Clock::time_point::max() ? nullptr : &time,
          nullptr);
  is_woken_ = descriptors[0].revents != 0;
  rang_ = descriptors[1].revents != 0;
}

}  // namespace gradcube::pytorch
