#include "trainer/torch/work.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <torch/csrc/autograd/graph_task.h>

#include "trainer/torch/interpreter.h"
#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {
namespace {

constexpr std::chrono::hours kForever(24 * 365);
constexpr const char* kAbandoned = "a signal has ended a wait() for what is still read";
constexpr const char* kLost =
    "a storage of this call was resized to nothing or shared with other processes before the call "
    "had ended, and does not have the result, which is gone: do either after wait()";
constexpr const char* kUnwritten =
    "a signal has ended the wait() for this call, so that it has left its tensors as they are: "
    "expected another wait() before it ends";

}  // namespace

GradcubeWork::GradcubeWork(int rank, c10d::OpType type, const char* title,
                           std::vector<at::Tensor> inputs, std::vector<at::Tensor> outputs,
                           std::vector<HeldMemory> memory, std::vector<Copy> copies,
                           std::shared_ptr<Stage> stage, std::shared_ptr<AnySource> any_source,
                           int source)
    : Work(rank, type, title, inputs),
      outputs_(std::move(outputs)),
      memory_(std::move(memory)),
      copies_(std::move(copies)),
      stage_(std::move(stage)),
      any_source_(std::move(any_source)),
      source_(source),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::ofTensors(), stage_ == nullptr
                                          ? std::vector<c10::Device>()
                                          : std::vector<c10::Device>{stage_->link().device})) {}

void GradcubeWork::start(const c10::intrusive_ptr<GradcubeWork>& work,
                         const std::shared_ptr<Progress>& progress, std::vector<Request> requests,
                         std::vector<Span> lent, std::vector<Span> touched,
                         Clock::time_point deadline) {
  if (requests.empty()) {
    work->end("");
    return;
  }
  std::shared_ptr<Gate> gate = work->stage_;
  if (work->any_source_ != nullptr) gate = work->any_source_;
  // The requests may go on when the work has ended.
  std::vector<KeptMemory> kept;
  for (const HeldMemory& one : work->memory_) kept.push_back(one.kept());
  const auto task = std::make_shared<Task>(
      std::move(requests), deadline,
      [work, kept = std::move(kept)](const std::string& failure) { work->end(failure); },
      std::move(gate), std::move(lent), std::move(touched));
  work->progress_ = progress;
  work->task_ = task;
  progress->submit(task);
}

void GradcubeWork::end(const std::string& failure) {
  std::exception_ptr error;
  try {
    if (!failure.empty()) throw std::runtime_error(failure);
    copy();
    if (has_lost_result()) throw std::runtime_error(kLost);
  } catch (...) {
    error = std::current_exception();
  }
  copies_.clear();
  memory_.clear();
  if (stage_ != nullptr) stage_->finish(error == nullptr);
  if (any_source_ != nullptr) any_source_->finish();
  if (error == nullptr) error = complete_future();
  if (error != nullptr) future_->setError(error);
  finish(error);
}

void GradcubeWork::end_by(const std::function<void()>& copy) {
  bool is_abandoned = false;
  {
    const std::lock_guard lock(mutex_);
    is_abandoned = is_abandoned_;
    if (!is_abandoned) copy();
  }
  end(is_abandoned ? kUnwritten : "");
}

bool GradcubeWork::has_lost_result() const {
  return std::any_of(memory_.begin(), memory_.end(),
                     [](const HeldMemory& one) { return one.has_lost_result(); });
}

void GradcubeWork::copy() {
  if (stage_ != nullptr) return stage_->copy_rest();
  if (any_source_ != nullptr) return any_source_->deliver();
  // Whatever mode the call was made in, which this thread does not know: an inference tensor can
  // be written to in this one alone, and any other tensor as well.
  const c10::InferenceMode as_values;
  for (const Copy& copy : copies_) {
    copy.to.copy_(copy.op.has_value() ? combined(copy.from, *copy.op) : copy.from);
  }
}

// Returns why it could not: out of memory. What a callback throws ends the process, as ever.
std::exception_ptr GradcubeWork::complete_future() {
  try {
    // It records what the current stream of the device has to do, for whoever takes its value.
    c10::OptionalStreamGuard guard;
    if (stage_ != nullptr) guard.reset_stream(stage_->link().back);
    future_->markCompleted(c10::IValue(outputs_));
  } catch (...) {
    if (future_->completed()) throw;
    return std::current_exception();
  }
  return nullptr;
}

bool GradcubeWork::isCompleted() {
  return Work::isCompleted() && (stage_ == nullptr || stage_->has_passed());
}

void GradcubeWork::synchronize() {
  if (stage_ != nullptr) future_->wait();
}

bool GradcubeWork::has_ended_within(std::chrono::milliseconds time, bool handles_signals) {
  const Clock::time_point until = deadline_after(time);
  std::unique_lock lock(mutex_);  // of whatever type a version has
  while (!completed_) {
    const Clock::time_point now = Clock::now();
    if (now >= until) return false;
    cv_.wait_until(lock, std::min(until, now + kSignalInterval), [this] { return completed_; });
    if (completed_) break;
    lock.unlock();
    if (handles_signals) handle_signals();
    if (const auto progress = progress_.lock()) progress->check_exit();
    lock.lock();
  }
  return true;
}

void GradcubeWork::expire(const char* why) {
  const auto progress = progress_.lock();
  const std::lock_guard lock(mutex_);
  late_ = why;
  const auto task = task_.lock();
  if (progress != nullptr && task != nullptr) progress->expire(task, why);
}

void GradcubeWork::abandon() {
  const auto progress = progress_.lock();
  std::shared_ptr<Task> task;
  {
    const std::lock_guard lock(mutex_);
    task = task_.lock();
    abandoned_ = task;
    is_abandoned_ = true;
  }
  const bool goes_on = progress != nullptr && task != nullptr && !Work::isCompleted();
  if (goes_on && progress->abandon(task, kAbandoned)) {
    // A signal would bring the caller to memory that the daemon still reads.
    has_ended_within(kForever, false);
  } else if (Work::isCompleted() && !future_->hasError()) {  // just now: no second wait() is needed
    take_back();
  }
  order_before_caller();
}

// What it has copied back comes before what the caller does now.
void GradcubeWork::order_before_caller() {
  if (stage_ == nullptr || !Work::isCompleted()) return;
  future_->hasError() ? stage_->order_before_caller() : synchronize();
}

void GradcubeWork::take_back() {
  const auto progress = progress_.lock();
  std::shared_ptr<Task> task;
  {
    const std::lock_guard lock(mutex_);
    task = abandoned_.lock();
    abandoned_.reset();
  }
  if (progress != nullptr && task != nullptr) progress->take_back(task);
}

void GradcubeWork::follow(const GradcubeWork& part) {
  const char* late = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (progress_.expired()) progress_ = part.progress_;  // the first time, before it is waited for
    task_ = part.task_;
    late = late_;
  }
  if (late != nullptr) expire(late);
}

// Of recv() nobody has the work any more, and the next one is to get the message. A second signal
// does not wait for that.
void GradcubeWork::break_off() {
  if (opType_ != c10d::OpType::SEND && opType_ != c10d::OpType::RECV) return abandon();
  expire(kInterrupted);
  try {
    has_ended_within(kForever);
  } catch (...) {
    abandon();
    throw;
  }
  order_before_caller();
}

void GradcubeWork::look_for_signals() {
  if (torch::autograd::get_current_graph_task_nodes_in_graph() != nullptr) return;
  try {
    handle_signals();
  } catch (...) {
    break_off();
    throw;
  }
}

void GradcubeWork::lose() {
  const WithoutInterpreterLock others_run;
  if (const auto progress = progress_.lock()) {
    progress->check_process();
    if (!Work::isCompleted()) progress->hand_over();
  }
  break_off();
}

bool GradcubeWork::wait(std::chrono::milliseconds timeout) {
  const bool is_limited = timeout > kNoTimeout;
  const auto progress = progress_.lock();
  // First of all: another thread may have held the work's mutex at the fork.
  if (progress != nullptr) progress->check_process();
  if (progress != nullptr && !Work::isCompleted()) progress->hand_over();
  {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = false;
  }
  try {
    if (is_limited && !has_ended_within(timeout)) expire(kTimeout);
    while (!has_ended_within(kForever)) {
    }
  } catch (...) {
    break_off();
    throw;
  }
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = exception_;
  }
  order_before_caller();
  if (failure != nullptr) std::rethrow_exception(failure);
  take_back();
  return true;
}

}  // namespace gradcube::pytorch
