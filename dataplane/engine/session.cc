#include "dataplane/engine/session.h"

#include <algorithm>
#include <sys/socket.h>
#include <unistd.h>

namespace gradcube::dataplane {

using control::CollectiveKind;
using shared::RegionHeader;

namespace {

constexpr bool is_same(shared::Kind kind, CollectiveKind same) {
  return static_cast<int>(kind) == static_cast<int>(same);
}
static_assert(is_same(shared::Kind::all_reduce, CollectiveKind::all_reduce) &&
              is_same(shared::Kind::reduce_scatter, CollectiveKind::reduce_scatter) &&
              is_same(shared::Kind::all_gather, CollectiveKind::all_gather) &&
              is_same(shared::Kind::broadcast, CollectiveKind::broadcast) &&
              is_same(shared::Kind::reduce, CollectiveKind::reduce) &&
              is_same(shared::Kind::barrier, CollectiveKind::barrier) &&
              shared::kKinds == control::kCollectiveKinds.size());

}  // namespace

Session::Session(std::shared_ptr<SessionRegion> region, int doorbell, const SessionShape& shape,
                 std::vector<Doorbell*> listeners, Doorbell* leader)
    : region_(std::move(region)),
      doorbell_(doorbell),
      ranks_(shape.ranks),
      reproducible_(shape.reproducible),
      listeners_(std::move(listeners)),
      leader_(leader) {
  for (const unsigned threads : shape.lane_threads) lanes_.emplace_back(threads);
}

Session::~Session() {
  if (doorbell_ >= 0) close(doorbell_);
}

bool Session::has_submission() const {
  return region_->header().submission_tail.load(std::memory_order_acquire) != submissions_taken_;
}

Session::Take Session::take() {
  if (violation_ != nullptr) return Take::violation;
  if (region_->faulted()) {
    violation_ = kMemoryFault;
    return Take::violation;
  }
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
  if (consumed > completions_written_ || completions_written_ - consumed > shared::kRingEntries) {
    violation_ = "its completion ring's head is out of range";
    return Take::violation;
  }
  if (submissions_taken_ - consumed >= kMaxInFlight) return Take::none;

  const shared::Submission submission = region_->read_submission(submissions_taken_);
  CollectiveRequest request;
  violation_ = check(submission, request);
  if (violation_ != nullptr) return Take::violation;
  Lane& lane = lanes_[request.lane];
  request.number = lane.published.load(std::memory_order_relaxed) + 1;
  lane.requests[request.number % kMaxInFlight] = request;
  ++submissions_taken_;
  header.submission_head.store(submissions_taken_, std::memory_order_release);
  lane.published.store(request.number, std::memory_order_release);
  published_.store(submissions_taken_, std::memory_order_release);
  return Take::taken;
}

const char* Session::check(const shared::Submission& submission, CollectiveRequest& request) const {
  if (submission.lane >= lanes_.size()) return "a submission names a lane that its job has not";
  const auto kind = control::collective_kind_numbered(submission.kind);
  if (!kind.has_value()) return "a submission asks for an unknown kind of collective";
  request.request = submission.request;
  request.lane = submission.lane;
  request.kind = *kind;
  request.root = submission.root;
  if (submission.root >= (control::has_root(request.kind) ? ranks_ : 1)) {
    return "a submission's root is not a rank of its job";
  }
  if (const char* problem = check_elements(submission, request)) return problem;
  if (request.kind == CollectiveKind::barrier && submission.count != 0) {
    return "a barrier has a buffer";
  }
  return check_buffer(submission, request);
}

const char* Session::check_elements(const shared::Submission& submission,
                                    CollectiveRequest& request) const {
  if (submission.dtype >= aggregation::kDataTypes) return "a submission's element type is unknown";
  if (submission.op >= aggregation::kOperations) return "a submission's operation is unknown";
  request.dtype = static_cast<aggregation::DataType>(submission.dtype);
  request.operation = static_cast<aggregation::Operation>(submission.op);
  request.carrier = {request.dtype, request.operation};
  if (!control::reduces(request.kind)) return nullptr;
  if (!aggregation::supports(request.dtype, request.operation)) {
    return "a submission's operation does not fit its element type";
  }
  if (!reproducible_) return nullptr;
  const auto carrier = aggregation::carrier_of({request.dtype, request.operation, ranks_});
  if (!carrier.has_value()) return "a submission adds more trainers than can be reproduced";
  request.carrier = *carrier;
  return nullptr;
}

const char* Session::check_buffer(const shared::Submission& submission,
                                  CollectiveRequest& request) const {
  const std::uint64_t chunks = control::is_rank_ordered(request.kind) ? ranks_ : 1;
  const std::uint64_t size = aggregation::element_bytes(request.carrier.type) * chunks;
  const std::uint64_t heap_bytes = region_->bytes() - shared::kHeapOffset;
  if (submission.offset < shared::kHeapOffset || submission.offset > region_->bytes() ||
      submission.offset % shared::kBufferAlignment != 0 || submission.count > heap_bytes / size ||
      submission.count * size > region_->bytes() - submission.offset) {
    return "a submission's buffer lies outside its heap";
  }
  if (submission.offset + submission.count * size > region_->confirmed()) {
    return "a submission's buffer lies beyond the memory that its daemon has confirmed";
  }
  request.buffer = region_->base() + submission.offset;
  request.count = submission.count;
  request.bytes = submission.count * size;
  return nullptr;
}

bool Session::anything_in_flight() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    // The completed ones first: they never exceed what is read as published after them.
    const std::uint64_t completed = lane.completed.load(std::memory_order_acquire);
    return lane.published.load(std::memory_order_acquire) != completed;
  });
}

std::uint64_t Session::finished_by_all(unsigned lane) const {
  std::uint64_t least = UINT64_MAX;
  for (const Counter& counter : lanes_[lane].finished) {
    least = std::min(least, counter.value.load(std::memory_order_acquire));
  }
  return least;
}

void Session::complete_through(unsigned lane_number, std::uint64_t number, std::int32_t code,
                               std::uint32_t notice) {
  Lane& lane = lanes_[lane_number];
  std::uint64_t completed = lane.completed.load(std::memory_order_relaxed);
  if (number <= completed) return;
  while (completed < number) {
    ++completed;
    region_->completion(completions_written_++) = {lane.requests[completed % kMaxInFlight].request,
                                                   code, notice};
  }
  lane.completed.store(completed, std::memory_order_release);
  region_->header().completion_tail.store(completions_written_, std::memory_order_release);
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
