// The half of Progress that ends tasks: well, by failures, late, and withdrawn.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "trainer/torch/late_memory.h"
#include "trainer/torch/of_process.h"
#include "trainer/torch/progress.h"

namespace gradcube::pytorch {
namespace {

// What inquiries may take at a time: a daemon that is silent, or asks other servers first, takes a
// while for each.
constexpr std::chrono::seconds kInquiries(1);
constexpr const char* kNotAsked =
    "the daemon did not say why in the second that it had for all calls that were late at once";

// What a message may take that is withdrawn, or was under way.
constexpr std::chrono::seconds kPatience(5);

const std::string kTooLate =
    "; nor was it withdrawn in 5 s, because a message is on its way, or servers do not answer: no "
    "later receive gets that message";

// Said where another one does not come to its end.
const std::string kOneHasCome = "one message has come, and another one is on its way";

const void* buffer_of(const gradcube_collective& collective) { return collective.buffer; }
const void* buffer_of(const Message& message) { return message.message.buffer; }

// Whether the daemon works on the buffer where it lies. What compares gives it a digest instead.
bool lies_there(const Request& request) {
  const auto* collective = std::get_if<gradcube_collective>(&request);
  return collective == nullptr || collective->kind != GRADCUBE_COMPARE;
}

// None of a message, which overtakes others.
std::uint64_t lane_bit(const Request& request) {
  const auto* collective = std::get_if<gradcube_collective>(&request);
  return collective == nullptr ? 0 : std::uint64_t{1} << collective->lane;
}

// A message that came, but not with the bytes that its receiver has room for.
std::string shortage_of(const Request& request) {
  const auto* message = std::get_if<Message>(&request);
  if (message == nullptr || message->message.direction != GRADCUBE_RECEIVE ||
      message->received == message->message.bytes) {
    return "";
  }
  return "the message from rank " + std::to_string(message->message.peer) + " has " +
         std::to_string(message->received) + " bytes, but the tensor that receives it has " +
         std::to_string(message->message.bytes) + ": expected the same of both";
}

}  // namespace

// The collectives of a lane end in order: behind one that has not, none has.
void Progress::look_for_ends() {
  std::uint64_t waiting_lanes = 0;
  const auto has_ended = [this, &waiting_lanes](const Flight& flight) {
    if (!flight.refusal.empty()) {
      end(flight, flight.refusal, false);
      return true;
    }
    const std::uint64_t lane = lane_bit(flight.task->requests_[flight.place]);
    if ((waiting_lanes & lane) != 0) return false;
    int done = 0;
    const int code = gradcube_test(session_->get(), flight.request, &done);
    if (done == 0 && code == GRADCUBE_OK) {
      waiting_lanes |= lane;
      return false;
    }
    end_by(flight, code);
    return true;
  };
  flights_.erase(std::remove_if(flights_.begin(), flights_.end(), has_ended), flights_.end());
}

// When it is told, whatever has not ended.
Clock::time_point Progress::last_moment(const Task& task) {
  if (!task.failure_.has_value()) return task.deadline_;
  return task.has_met_ ? std::max(task.deadline_, task.patience_) : task.patience_;
}

// Null: its time is not up, or it fails already.
const char* Progress::why_late(const Task& task, Clock::time_point now) {
  if (task.told_ || task.failure_.has_value()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  return task.deadline_ <= now ? task.late_ : nullptr;
}

void Progress::look_for_timeouts() {
  const Clock::time_point now = Clock::now();
  // Asks the daemon why. What ended just now is over; else the request stays in flight.
  const auto has_ended = [&](const Flight& flight) {
    const char* const late = why_late(*flight.task, now);
    if (late == nullptr) return false;
    int done = 0;
    int code = gradcube_test(session_->get(), flight.request, &done);
    if (done == 0 && Clock::now() - now > kInquiries) {
      fail(flight.task, std::string(late) + kNotAsked);
      return false;
    }
    if (done == 0) code = gradcube_wait(session_->get(), flight.request, 0);
    if (code == GRADCUBE_ETIMEDOUT) {
      fail(flight.task, late + session_->last_error());
      return false;
    }
    end_by(flight, code);
    return true;
  };
  flights_.erase(std::remove_if(flights_.begin(), flights_.end(), has_ended), flights_.end());
  for (const TaskPointer& task : tasks_waiting()) {
    const char* const late = why_late(*task, now);
    if (late == nullptr) continue;
    const char* const gate = task->gate_ == nullptr ? "" : "its device has yet to give it, or ";
    fail(task, late + std::string(gate) + "too much before it is in flight");
  }
}

void Progress::withdraw_failing() {
  withdraws_again_ = false;
  if (failing_.empty()) return;
  forget_waiting();
  for (Flight& flight : flights_) {
    const Request& request = flight.task->requests_[flight.place];
    if (!flight.task->failure_.has_value() || flight.withdrawn || !flight.refusal.empty() ||
        kind_of(request) == kCollectives) {
      continue;
    }
    flight.withdrawn = gradcube_cancel(session_->get(), flight.request) != GRADCUBE_EAGAIN;
    withdraws_again_ = withdraws_again_ || !flight.withdrawn;
  }
  const Clock::time_point now = Clock::now();
  std::vector<TaskPointer> told;  // which may free tensors, after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_told = [this, now](const TaskPointer& task) {
    if (task->messages_ == 0 && (task->broken_ || task->open_ != 0)) {
      add_ending(task, why_none_came(*task, *task->failure_));
    } else if (last_moment(*task) <= now) {
      add_ending(task, task->lost_.empty() ? *task->failure_ + kTooLate : task->lost_);
    }
    return task->told_;
  };
  const auto first = std::stable_partition(failing_.begin(), failing_.end(),
                                           [&](const TaskPointer& task) { return !is_told(task); });
  std::move(first, failing_.end(), std::back_inserter(told));
  failing_.erase(first, failing_.end());
}

// Of the tasks that fail, what was not begun. Collectives are begun even so: their order is the
// same on all ranks.
void Progress::forget_waiting() {
  if (!some_wait_) return;
  const auto is_forgotten = [](const Waiting& one) {
    if (!one.task->failure_.has_value()) return false;
    --one.task->open_;
    --one.task->messages_;
    one.task->broken_ = true;
    return true;
  };
  const std::lock_guard<std::mutex> order(order_);
  for (const std::size_t kind : {kSends, kReceives}) {
    std::deque<Waiting>& waiting = waiting_[kind];
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), is_forgotten), waiting.end());
  }
}

// By the session's code for its request.
void Progress::end_by(const Flight& flight, int code) {
  const bool is_well = code == GRADCUBE_OK;
  end(flight, is_well ? shortage_of(flight.task->requests_[flight.place]) : session_->last_error(),
      is_well || code == GRADCUBE_EMISMATCH);
}

// `has_met`: of a message, whether it has met the other rank's.
void Progress::end(const Flight& flight, const std::string& failure, bool has_met) {
  Task& task = *flight.task;
  const std::size_t kind = kind_of(task.requests_[flight.place]);
  --in_flight_[kind];
  --task.open_;
  if (failure.empty() && task.gate_ != nullptr) task.gate_->has_ended(flight.place);
  if (kind != kCollectives) --task.messages_;
  if (task.gate_ != nullptr && task.gate_->takes_one_message()) {
    return end_one_of_many(flight, failure, has_met);
  }
  if (!failure.empty()) {
    task.broken_ = true;
    if (!flight.refusal.empty()) {
      fail(flight.task, failure);
    } else if (!task.failure_.has_value()) {
      add_ending(flight.task, failure);
    }
  }
  if (task.open_ != 0) return;
  add_ending(flight.task, task.failure_.has_value() && task.broken_ ? *task.failure_ : "");
}

// The first message withdraws the others.
void Progress::end_one_of_many(const Flight& flight, const std::string& failure, bool has_met) {
  Task& task = *flight.task;
  task.has_one_ = task.has_one_ || failure.empty();
  task.has_met_ = task.has_met_ || has_met;
  if (has_met && task.lost_.empty()) task.lost_ = failure;
  if (has_met) fail(flight.task, failure.empty() ? kTimeout + kOneHasCome : failure);
  if (task.open_ == 0) {
    add_ending(flight.task, why_none_came(task, task.failure_.value_or(failure)));
  }
}

// Of those of which one is enough: empty if it has come, and none was lost.
std::string Progress::why_none_came(const Task& task, const std::string& failure) {
  if (!task.lost_.empty()) return task.lost_;
  return task.has_one_ ? "" : failure;
}

void Progress::add_ending(const TaskPointer& task, const std::string& failure) {
  if (!std::exchange(task->told_, true)) endings_.push_back({task, failure});
}

// It was late or refused: its messages are withdrawn before it is told.
void Progress::fail(const TaskPointer& task, const std::string& failure) {
  if (task->told_ || task->failure_.has_value()) return;
  task->failure_ = failure;
  task->patience_ = Clock::now() + kPatience;
  failing_.push_back(task);
}

// Before they are told: their callers may write to their memory then, and give it back, while
// requests of theirs go on.
void Progress::let_go_of_memory() {
  const auto goes_on = [](const Ending& ending) { return ending.task->open_ != 0; };
  if (std::none_of(endings_.begin(), endings_.end(), goes_on)) return;
  const std::lock_guard<std::mutex> order(order_);  // each of them has been submitted as a whole
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!arrivals_.empty()) wake();  // one that was refused is told in the next round
    std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(flights_));
    arrivals_.clear();
  }
  for (const Ending& ending : endings_) {
    if (goes_on(ending) && !is_let_go(ending.task)) lose_order(ending.failure);
  }
}

bool Progress::is_let_go(const TaskPointer& task) {
  const auto is_held = [this, &task](const Flight& flight) {
    return flight.task == task && flight.request != 0 && is_lent(*task, flight.place) &&
           gradcube_forget(session_->get(), flight.request) != GRADCUBE_OK;
  };
  return !reads_what_waits(task) && std::none_of(flights_.begin(), flights_.end(), is_held);
}

// Whether this request works on the caller's own memory.
bool Progress::is_lent(const Task& task, std::size_t place) {
  const void* buffer =
      std::visit([](const auto& one) { return buffer_of(one); }, task.requests_[place]);
  return std::any_of(task.lent_.begin(), task.lent_.end(),
                     [buffer](const Span& span) { return span.begin == buffer; });
}

bool Progress::abandon(const TaskPointer& task, const std::string& why) {
  if (is_read_later(task)) {
    lose_order(why);
    return true;
  }
  if (std::none_of(task->touched_.begin(), task->touched_.end(),
                   [](const Span& span) { return span.is_written && span.bytes != 0; })) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!has_left_) of_process<LateMemory>().add(this, task, task->touched_);
  return false;
}

void Progress::take_back(const TaskPointer& task) { of_process<LateMemory>().remove(task.get()); }

// Whether others may be given what the caller writes to its memory from now on.
bool Progress::is_read_later(const TaskPointer& task) {
  const auto is_shared = [this](const Span& span) {
    return session_->is_shared(span.begin, span.bytes);
  };
  const bool is_worked_on = std::any_of(task->requests_.begin(), task->requests_.end(), lies_there);
  if (is_worked_on && std::any_of(task->lent_.begin(), task->lent_.end(), is_shared)) return true;
  const std::lock_guard<std::mutex> order(order_);
  return reads_what_waits(task);
}

// What has not begun reads the caller's memory when it does.
bool Progress::reads_what_waits(const TaskPointer& task) {
  const auto reads = [this, &task](const Waiting& one) {
    if (one.task != task) return false;
    std::string refusal;
    return task->gate_ == nullptr ? !task->lent_.empty() : !is_open(task, one.place, refusal);
  };
  return std::any_of(waiting_.begin(), waiting_.end(), [&reads](const std::deque<Waiting>& each) {
    return std::any_of(each.begin(), each.end(), reads);
  });
}

}  // namespace gradcube::pytorch
