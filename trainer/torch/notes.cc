#include "trainer/torch/notes.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/torch/interpreter.h"

namespace gradcube::pytorch {

Notes::Notes(std::shared_ptr<Progress> progress, std::uint64_t tag)
    : progress_(std::move(progress)), tag_(tag), box_(std::make_shared<Box>()) {}

// `ended` owns the number, and lives until the message has ended.
void Notes::submit(gradcube_direction direction, int peer,
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

Notes::Sent Notes::send(int to, std::uint64_t number) {
  const auto sent = std::make_shared<bool>(false);
  const auto memory = std::make_shared<std::uint64_t>(number);
  submit(GRADCUBE_SEND, to, memory, [box = box_, sent, memory](const std::string& failure) {
    const std::lock_guard<std::mutex> lock(box->mutex);
    *sent = true;
    if (!failure.empty()) box->arrivals.push_back({{-1, 0}, failure});
    box->changed.notify_all();
  });
  return sent;
}

void Notes::listen(int from) {
  if (!listening_.insert(from).second) return;
  const auto memory = std::make_shared<std::uint64_t>(0);
  submit(GRADCUBE_RECEIVE, from, memory, [box = box_, from, memory](const std::string& failure) {
    const std::lock_guard<std::mutex> lock(box->mutex);
    box->arrivals.push_back({{from, *memory}, failure});
    box->changed.notify_all();
  });
}

std::optional<Note> Notes::next(Clock::time_point deadline) {
  Arrival arrival;
  if (!wait(deadline, [this] { return !box_->arrivals.empty(); })) return std::nullopt;
  {
    const std::lock_guard<std::mutex> lock(box_->mutex);
    arrival = std::move(box_->arrivals.front());
    box_->arrivals.pop_front();
  }
  listening_.erase(arrival.note.from);
  if (!arrival.failure.empty()) throw std::runtime_error(arrival.failure);
  return arrival.note;
}

void Notes::wait_for(const std::vector<Sent>& sent, Clock::time_point deadline) {
  wait(deadline, [&sent] {
    return std::all_of(sent.begin(), sent.end(), [](const Sent& one) { return *one; });
  });
}

bool Notes::wait(Clock::time_point deadline, const std::function<bool()>& is_over) {
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
