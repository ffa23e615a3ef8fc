#include "dataplane/engine/session.h"

#include <algorithm>
#include <sys/socket.h>
#include <unistd.h>

namespace gradcube::dataplane {

using shared::RegionHeader;

Session::Session(std::unique_ptr<SessionRegion> region, int doorbell, unsigned threads,
                 std::vector<Doorbell*> listeners)
    : region_(std::move(region)),
      doorbell_(doorbell),
      listeners_(std::move(listeners)),
      finished_(threads) {}

Session::~Session() {
  if (doorbell_ >= 0) close(doorbell_);
}

bool Session::has_submission() const {
  return region_->header().submission_tail.load(std::memory_order_acquire) != submissions_taken_;
}

Session::Take Session::take() {
  if (violation_ != nullptr) return Take::violation;
  if (!taking_) return Take::none;
  RegionHeader& header = region_->header();
  const std::uint64_t tail = header.submission_tail.load(std::memory_order_acquire);
  if (tail == submissions_taken_) return Take::none;
  if (tail - submissions_taken_ > shared::kRingEntries) {
    violation_ = "its submission ring's tail is out of range";
    return Take::violation;
  }
  // Room for the completion of everything in flight, so that completing never has to wait for the
  // trainer.
  const std::uint64_t consumed = header.completion_head.load(std::memory_order_acquire);
  const std::uint64_t completed = completed_.load(std::memory_order_relaxed);
  if (consumed > completed || completed - consumed > shared::kRingEntries) {
    violation_ = "its completion ring's head is out of range";
    return Take::violation;
  }
  if (submissions_taken_ - consumed >= kMaxInFlight) return Take::none;

  const shared::Submission submission = region_->read_submission(submissions_taken_);
  CollectiveRequest request;
  violation_ = check(submission, request);
  if (violation_ != nullptr) return Take::violation;
  requests_[request.number % kMaxInFlight] = request;
  ++submissions_taken_;
  header.submission_head.store(submissions_taken_, std::memory_order_release);
  published_.store(submissions_taken_, std::memory_order_release);
  return Take::taken;
}

const char* Session::check(const shared::Submission& submission, CollectiveRequest& request) const {
  if (submission.request != submissions_taken_ + 1) return "a submission's number is out of turn";
  if (submission.kind != static_cast<std::uint8_t>(shared::Kind::allreduce)) {
    return "a submission asks for an unknown kind of collective";
  }
  if (submission.dtype >= aggregation::kDataTypes) return "a submission's element type is unknown";
  if (submission.op >= aggregation::kOperations) return "a submission's operation is unknown";
  request.dtype = static_cast<aggregation::DataType>(submission.dtype);
  request.operation = static_cast<aggregation::Operation>(submission.op);
  if (!aggregation::supports(request.dtype, request.operation)) {
    return "a submission's operation does not fit its element type";
  }
  const std::uint64_t size = aggregation::element_bytes(request.dtype);
  const std::uint64_t heap_bytes = region_->bytes() - shared::kHeapOffset;
  if (submission.offset < shared::kHeapOffset || submission.offset > region_->bytes() ||
      submission.offset % shared::kBufferAlignment != 0 || submission.count > heap_bytes / size ||
      submission.count * size > region_->bytes() - submission.offset) {
    return "a submission's buffer lies outside its heap";
  }
  request.number = submission.request;
  request.buffer = region_->base() + submission.offset;
  request.count = submission.count;
  request.bytes = submission.count * size;
  return nullptr;
}

std::uint64_t Session::finished_by_all() const {
  std::uint64_t least = UINT64_MAX;
  for (const Counter& counter : finished_) {
    least = std::min(least, counter.value.load(std::memory_order_acquire));
  }
  return least;
}

void Session::complete_through(std::uint64_t number, std::int32_t code) {
  std::uint64_t completed = completed_.load(std::memory_order_relaxed);
  if (number <= completed) return;
  while (completed < number) {
    region_->completion(completed) = {completed + 1, code, 0};
    ++completed;
  }
  completed_.store(completed, std::memory_order_release);
  region_->header().completion_tail.store(completed, std::memory_order_release);
  ring();
}

void Session::ring() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (region_->header().trainer_asleep.load(std::memory_order_relaxed) == 0) return;
  const char bell = 0;
  // A full socket already holds a byte that wakes the trainer.
  (void)!send(doorbell_, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Session::set_asleep(bool asleep) {
  region_->header().daemon_asleep.store(asleep ? 1 : 0, std::memory_order_seq_cst);
}

void Session::drain_doorbell() {
  // Once: a trainer that rings without end must not keep the lcore here. The rest only ends the
  // next sleep early.
  char bells[4096];
  (void)!recv(doorbell_, bells, sizeof bells, MSG_DONTWAIT);
}

}  // namespace gradcube::dataplane
