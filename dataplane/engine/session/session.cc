#include "dataplane/engine/session/session.h"

#include <algorithm>
#include <bit>
#include <sys/socket.h>
#include <unistd.h>

namespace gradcube::dataplane {

using control::CollectiveKind;
using shared::RegionHeader;

namespace {

constexpr bool is_same(shared::CollectiveKind kind, CollectiveKind same) {
  return static_cast<int>(kind) == static_cast<int>(same);
}
static_assert(is_same(shared::CollectiveKind::all_reduce, CollectiveKind::all_reduce) &&
              is_same(shared::CollectiveKind::reduce_scatter, CollectiveKind::reduce_scatter) &&
              is_same(shared::CollectiveKind::all_gather, CollectiveKind::all_gather) &&
              is_same(shared::CollectiveKind::broadcast, CollectiveKind::broadcast) &&
              is_same(shared::CollectiveKind::reduce, CollectiveKind::reduce) &&
              is_same(shared::CollectiveKind::barrier, CollectiveKind::barrier) &&
              shared::kCollectiveKinds == control::kCollectiveKinds.size());

}  // namespace

Session::Session(std::shared_ptr<SessionRegion> region, int doorbell, const SessionShape& shape,
                 std::vector<Doorbell*> listeners, Doorbell* leader, unsigned local)
    : ranks_(shape.ranks),
      reproducible_(shape.reproducible),
      listeners_(std::move(listeners)),
      leader_(leader),
      trainers_(shape.trainers),
      mail_(shape.trainers, shape.trainers * kMaxInFlight) {
  for (const unsigned threads : shape.lane_threads) lanes_.emplace_back(threads);
  add(local, std::move(region), doorbell);
}

Session::Session(std::vector<Doorbell*> listeners, Doorbell* leader)
    : ranks_(0),
      reproducible_(false),
      listeners_(std::move(listeners)),
      leader_(leader),
      mail_(0, 0) {}

Session::~Session() {
  for_each_trainer([](const Trainer& trainer) {
    if (trainer.doorbell >= 0) close(trainer.doorbell);
  });
}

void Session::add(unsigned local, std::shared_ptr<SessionRegion> region, int doorbell) {
  std::deque<TrainerLane> lanes(lanes_.size());
  std::vector<std::uint32_t> mail(shared::kRingEntries, kNoMail);
  // From here on nothing throws.
  Trainer& trainer = trainers_[local];
  trainer.lanes.swap(lanes);
  trainer.mail.swap(mail);
  trainer.doorbell = doorbell;
  trainer.region = std::move(region);
}

void Session::dismiss(unsigned local) {
  trainers_[local].dismissed = true;
  if (violator_ == local) violation_ = nullptr;
}

std::uint64_t Session::region_bytes() const {
  std::uint64_t most = 0;
  for_each_trainer([&](const Trainer& trainer) { most = std::max(most, trainer.region->bytes()); });
  return most;
}

std::uint64_t Session::resident_bytes() const {
  std::uint64_t bytes = 0;
  for_each_trainer([&](const Trainer& trainer) { bytes += trainer.region->resident_bytes(); });
  return bytes;
}

bool Session::has_submission() const {
  return std::any_of(trainers_.begin(), trainers_.end(),
                     [](const Trainer& trainer) { return has_submission(trainer); });
}

bool Session::has_submission(const Trainer& trainer) {
  return trainer.region != nullptr && !trainer.dismissed &&
         trainer.region->header().submission_tail.load(std::memory_order_acquire) !=
             trainer.submissions_taken;
}

// The trainers take turns, so that none fills the lanes while others wait.
Session::Take Session::take() {
  if (violation_ != nullptr) return Take::violation;
  for (unsigned tried = 0; tried < trainers(); ++tried) {
    const unsigned local = next_trainer_;
    next_trainer_ = local + 1 == trainers() ? 0 : local + 1;
    if (!has(local) || trainers_[local].dismissed) continue;
    if (const Take taken = take(local); taken != Take::none) return taken;
  }
  return Take::none;
}

Session::Take Session::violate(unsigned local, const char* violation) {
  violation_ = violation;
  violator_ = local;
  return Take::violation;
}

Session::Take Session::take(unsigned local) {
  Trainer& trainer = trainers_[local];
  const SessionRegion& region = *trainer.region;
  if (region.faulted()) return violate(local, kMemoryFault);
  RegionHeader& header = region.header();
  const std::uint64_t tail = header.submission_tail.load(std::memory_order_acquire);
  if (tail == trainer.submissions_taken) return Take::none;
  if (tail - trainer.submissions_taken > shared::kSubmissionEntries) {
    return violate(local, "its submission ring's tail is out of range");
  }
  // Room for the completion of everything in flight, so that completing never has to wait for the
  // trainer.
  const std::uint64_t consumed = header.completion_head.load(std::memory_order_acquire);
  if (consumed > trainer.completions_written ||
      trainer.completions_written - consumed > shared::kRingEntries) {
    return violate(local, "its completion ring's head is out of range");
  }
  const shared::Submission submission = region.read_submission(trainer.submissions_taken);
  const auto type = static_cast<shared::SubmissionType>(submission.type);
  if (type == shared::SubmissionType::withdrawal) {
    return take_withdrawal(trainer, local, submission);
  }
  if (trainer.submissions_taken - trainer.withdrawals - consumed >= kMaxInFlight) return Take::none;
  if (type == shared::SubmissionType::message) return take_mail(trainer, local, submission);
  if (type == shared::SubmissionType::push) return take_push(trainer, local, submission);
  if (type != shared::SubmissionType::collective) {
    return violate(local, "a submission of an unknown type");
  }
  CollectiveRequest request;
  const char* violation = check(region, submission, request);
  if (violation != nullptr) return violate(local, violation);
  TrainerLane& lane = trainer.lanes[request.lane];
  request.number = lane.taken.load(std::memory_order_relaxed) + 1;
  if (!has_place(lanes_[request.lane], request.number)) return Take::none;
  lane.requests[request.number % kMaxInFlight] = request;
  count_taken(trainer);
  lane.taken.store(request.number, std::memory_order_release);
  publish_common(request.lane);
  return Take::taken;
}

void Session::count_taken(Trainer& trainer) {
  ++trainer.submissions_taken;
  trainer.region->header().submission_head.store(trainer.submissions_taken,
                                                 std::memory_order_release);
}

void Session::complete(Trainer& trainer, std::uint64_t request, std::int32_t code,
                       std::uint32_t notice, std::uint64_t bytes) {
  trainer.region->completion(trainer.completions_written++) = {request, code, notice, bytes};
}

void Session::publish_completions(const Trainer& trainer) {
  trainer.region->header().completion_tail.store(trainer.completions_written,
                                                 std::memory_order_release);
  ring(trainer);
}

// What the last of the trainers has submitted now.
void Session::publish_common(unsigned lane) {
  std::uint64_t common = UINT64_MAX;
  for (const Trainer& trainer : trainers_) {
    if (trainer.region == nullptr) return;
    common = std::min(common, trainer.lanes[lane].taken.load(std::memory_order_relaxed));
  }
  const std::uint64_t before = lanes_[lane].published.load(std::memory_order_relaxed);
  if (common == before) return;
  for (std::uint64_t number = before + 1; number <= common; ++number) {
    trainers_[0].lanes[lane].requests[number % kMaxInFlight].agreed = agree_on(lane, number);
    if (concerns_all(lane, number)) lanes_[lane].concerns_all = number;
  }
  lanes_[lane].published.store(common, std::memory_order_release);
  published_.fetch_add(common - before, std::memory_order_release);
}

bool Session::agree_on(unsigned lane, std::uint64_t number) const {
  const CollectiveRequest& first = request(lane, number);
  for (unsigned local = 1; local < trainers(); ++local) {
    const CollectiveRequest& other = request(lane, number, local);
    if (other.kind != first.kind || other.root != first.root || other.gathered != first.gathered ||
        other.count != first.count || other.dtype != first.dtype ||
        other.operation != first.operation) {
      return false;
    }
  }
  return true;
}

const char* Session::check(const SessionRegion& region, const shared::Submission& submission,
                           CollectiveRequest& request) const {
  const shared::SubmittedCollective& asked = submission.collective;
  if (asked.lane >= lanes_.size()) return "a submission names a lane that its job has not";
  const auto kind = control::collective_kind_numbered(asked.kind);
  if (!kind.has_value()) return "a submission asks for an unknown kind of collective";
  request.request = submission.request;
  request.lane = asked.lane;
  request.kind = *kind;
  request.root = asked.root;
  if (asked.root >= (control::has_root(request.kind) ? ranks_ : 1)) {
    return "a submission's root is not a rank of its job";
  }
  request.gathered = asked.gathered;
  const bool gathers = request.kind == CollectiveKind::all_gather;
  if (static_cast<unsigned>(asked.gathered) >= (gathers ? shared::kGatheredThings : 1)) {
    return "a submission gathers what is unknown";
  }
  if (const char* problem = check_elements(submission, request)) return problem;
  if (request.kind == CollectiveKind::barrier && submission.count != 0) {
    return "a barrier has a buffer";
  }
  return check_buffer(region, submission, request);
}

const char* Session::check_elements(const shared::Submission& submission,
                                    CollectiveRequest& request) const {
  if (!aggregation::is_data_type(submission.dtype)) return "a submission's element type is unknown";
  const std::uint8_t op = submission.collective.op;
  if (op >= aggregation::kOperations) return "a submission's operation is unknown";
  request.dtype = static_cast<aggregation::DataType>(submission.dtype);
  request.operation = static_cast<aggregation::Operation>(op);
  request.carrier = {request.dtype, request.operation};
  if (!control::reduces(request.kind)) {
    // On the wire a wide number has the bits of the operation, too.
    return op == 0 || submission.dtype < aggregation::kFirstWideNumber
               ? nullptr
               : "a submission has an operation that its kind has not";
  }
  if (!aggregation::supports(request.dtype, request.operation)) {
    return "a submission's operation does not fit its element type";
  }
  const aggregation::Parts parts = aggregation::parts_of(request.dtype);
  request.parts = parts.count;
  request.carrier = {parts.type, aggregation::operation_on_parts(request.dtype, request.operation)};
  if (!reproducible_) return nullptr;
  const auto carrier = aggregation::carrier_of({parts.type, request.carrier.operation, ranks_});
  if (!carrier.has_value()) return "a submission adds more trainers than can be reproduced";
  request.carrier = *carrier;
  return nullptr;
}

const char* Session::check_buffer(const SessionRegion& region, const shared::Submission& submission,
                                  CollectiveRequest& request) const {
  const std::uint64_t chunks = control::is_rank_ordered(request.kind) ? ranks_ : 1;
  const std::uint64_t size =
      aggregation::element_bytes(request.carrier.type) * request.parts * chunks;
  // So that the product does not overflow.
  if (submission.count > region.bytes() / size) {
    return "a submission's buffer lies outside its heap";
  }
  const std::uint64_t bytes = submission.count * size;
  if (const char* violation = region.problem_of(submission.offset, bytes)) return violation;
  request.count = submission.count;
  request.bytes = bytes;
  request.buffer = region.base() + submission.offset;
  return nullptr;
}

Session::Take Session::take_push(Trainer& trainer, unsigned local,
                                 const shared::Submission& submission) {
  const HubPushes::Outcome outcome = pushes_.take(*trainer.region, local, submission);
  if (outcome.violation != nullptr) return violate(local, outcome.violation);
  count_taken(trainer);
  if (outcome.code != 0) {
    complete(trainer, submission.request, outcome.code, outcome.notice);
    publish_completions(trainer);
  }
  count_pushes();
  return Take::taken;
}

// For engines that must not look at the hub: it may go.
void Session::count_pushes() {
  const std::uint64_t pushes = hub() == nullptr ? 0 : hub()->board().in_flight();
  pushes_in_flight_.store(pushes, std::memory_order_relaxed);
}

void Session::end_hub(std::int32_t code, std::uint32_t notice) {
  if (hub() == nullptr) return;
  hub()->board().fail_all([&](unsigned local, std::uint64_t request, double) {
    complete(trainers_[local], request, code, notice);
  });
  pushes_.end(code, notice);
  count_pushes();
  for_each_trainer([](const Trainer& trainer) { publish_completions(trainer); });
}

Session::EndedPushes Session::end_pushes() {
  EndedPushes ended;
  ended.rounds = hub()->board().take_ended(
      [&ended] {
        const bool is_pending = GuardedMemory::pending();
        ended.held_up = ended.held_up || is_pending;
        return !is_pending;
      },
      [this](unsigned local, std::uint64_t request, double squares) {
        complete(trainers_[local], request, 0, 0, std::bit_cast<std::uint64_t>(squares));
      });
  count_pushes();
  if (ended.rounds != 0) {
    for_each_trainer([](const Trainer& trainer) { publish_completions(trainer); });
  }
  return ended;
}

bool Session::anything_shared_in_flight() const {
  if (pushes_in_flight() != 0) return true;
  return std::any_of(trainers_.begin(), trainers_.end(), [](const Trainer& trainer) {
    return std::any_of(trainer.lanes.begin(), trainer.lanes.end(), [](const TrainerLane& lane) {
      // What has ended first: it never exceeds what is read as taken after it.
      const std::uint64_t ended = lane.ended.load(std::memory_order_acquire);
      return lane.taken.load(std::memory_order_acquire) != ended;
    });
  });
}

std::uint64_t Session::completed(unsigned lane) const {
  std::uint64_t least = UINT64_MAX;
  for (const Trainer& trainer : trainers_) {
    if (trainer.region == nullptr) return 0;
    least = std::min(least, trainer.lanes[lane].ended.load(std::memory_order_acquire));
  }
  return least;
}

std::uint64_t Session::completions() const {
  std::uint64_t written = 0;
  for (const Trainer& trainer : trainers_) written += trainer.completions_written;
  return written;
}

void Session::complete_through(unsigned lane, std::uint64_t number, std::int32_t code,
                               std::uint32_t notice) {
  const bool was_full = published(lane) - completed(lane) > kMostBegun;
  for (Trainer& trainer : trainers_) {
    if (trainer.region != nullptr) end(trainer, lane, number, code, notice);
  }
  if (was_full) ring_pollers();
}

void Session::end(Trainer& trainer, unsigned lane_number, std::uint64_t through, std::int32_t code,
                  std::uint32_t notice) {
  TrainerLane& lane = trainer.lanes[lane_number];
  const std::uint64_t last = std::min(through, lane.taken.load(std::memory_order_relaxed));
  std::uint64_t ended = lane.ended.load(std::memory_order_relaxed);
  if (last <= ended) return;
  while (ended < last) {
    ++ended;
    complete(trainer, lane.requests[ended % kMaxInFlight].request, code, notice);
  }
  lane.ended.store(ended, std::memory_order_release);
  publish_completions(trainer);
}

void Session::ring(const Trainer& trainer) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (trainer.region->header().trainer_asleep.load(std::memory_order_relaxed) == 0) return;
  const char bell = 0;
  // A full socket already holds a byte that wakes the trainer.
  (void)!send(trainer.doorbell, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Session::set_asleep(bool asleep) {
  for_each_trainer([asleep](const Trainer& trainer) {
    trainer.region->header().daemon_asleep.store(asleep ? 1 : 0, std::memory_order_seq_cst);
  });
}

void Session::drain_doorbells() {
  // Once: a trainer that rings without end must not keep the lcore here. The rest only ends the
  // next sleep early.
  for_each_trainer([](const Trainer& trainer) {
    char bells[4096];
    (void)!recv(trainer.doorbell, bells, sizeof bells, MSG_DONTWAIT);
  });
}

}  // namespace gradcube::dataplane
