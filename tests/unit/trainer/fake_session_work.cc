// What a fake session makes of its trainer's submissions.
#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <sys/socket.h>
#include <utility>

#include "tests/unit/trainer/fake_arithmetic.h"
#include "tests/unit/trainer/fake_daemon.h"
#include "tests/unit/trainer/fake_session.h"
#include "trainer/src/hub/said.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

bool FakeSession::work(bool released) {
  if (region_ == nullptr || finished_) return false;
  shared::RegionHeader& ring = header();
  const std::uint64_t before = submission_head_;
  const std::uint64_t tail = ring.submission_tail.load(std::memory_order_seq_cst);
  while (submission_head_ < tail) {
    std::memcpy(&last_submission_,
                region_ + shared::kSubmissions +
                    submission_head_ % shared::kSubmissionEntries * sizeof(last_submission_),
                sizeof(last_submission_));
    ring.submission_head.store(++submission_head_, std::memory_order_release);
    if (misbehave()) return true;
    if (last_submission_.type == static_cast<std::uint8_t>(shared::SubmissionType::withdrawal)) {
      withdraw(last_submission_);
    } else {
      waiting_.push_back(last_submission_);
    }
  }
  if (may_serve(released)) {
    if (job_ == "backwards") std::reverse(waiting_.begin(), waiting_.end());
    serve_all(released);
  }
  return submission_head_ != before;
}

bool FakeSession::may_serve(bool released) {
  constexpr int kTurns = 2;
  if (job_ == "hold" || job_ == "silent" || job_ == "backwards") return released;
  if (job_ != "slow" || waiting_.empty()) return true;
  turns_waited_ = (turns_waited_ + 1) % kTurns;
  return turns_waited_ == 0;
}

void FakeSession::serve_all(bool released) {
  std::deque<shared::Submission> held;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    const bool is_held = is_push(waiting_.front())
                             ? job_ == "unpushed"
                             : (job_ == "uneven" && !is_barrier(waiting_.front())) ||
                                   (job_ == "unheard" && was_pushed_to_) ||
                                   (job_ == "unprepared" && gathers_ == 4);
    if (is_held && !released) {
      held.push_back(waiting_.front());
    } else {
      serve(waiting_.front());
    }
  }
  waiting_ = std::move(held);
}

void FakeSession::serve(const shared::Submission& submission) {
  if (fail(submission) || exchange(submission) || push(submission)) return;
  const bool aligned = submission.offset % shared::kBufferAlignment == 0;
  const bool inside =
      submission.offset >= shared::kHeapOffset && submission.offset <= confirmed_ &&
      buffer_bytes(submission, static_cast<std::size_t>(size_)) <= confirmed_ - submission.offset;
  if (!aligned || !inside) return complete(submission.request, GRADCUBE_EINVAL);
  compute_result(submission, region_ + submission.offset, static_cast<std::size_t>(rank_),
                 static_cast<std::size_t>(size_));
  strike_hub(submission);
  dissent(submission);
  complete(submission.request, GRADCUBE_OK);
  if (job_ == "twice") complete(submission.request, GRADCUBE_OK);
}

bool FakeSession::fail(const shared::Submission& submission) {
  if (job_ == "unexplained") {
    complete(submission.request, GRADCUBE_EPEER);
  } else if (job_ == "vanished") {
    complete(submission.request, GRADCUBE_EPEER, 17);
  } else if (job_ == "fail" || (job_ == "uneven" && is_barrier(submission))) {
    notify(shared::MessageType::failure, GRADCUBE_EPEER,
           kFailure + std::to_string(submission.request), ++notices_);
    complete(submission.request, GRADCUBE_EPEER, notices_);
  } else {
    return false;
  }
  return true;
}

// Sends end at once, and receives get what the tag says: so many bytes of kReceived; but with
// kTooLong a message that does not fit, with kLie one that is longer than the buffer, and with
// kTooFar none; and with kOtherType the other trainer has int32.
bool FakeSession::exchange(const shared::Submission& submission) {
  if (submission.type != static_cast<std::uint8_t>(shared::SubmissionType::message)) return false;
  const bool sends =
      submission.message.direction == static_cast<std::uint8_t>(shared::Direction::send);
  if (submission.message.tag == kOtherType) {
    complete(submission.request, GRADCUBE_EMISMATCH, GRADCUBE_INT32 + 1, submission.count);
  } else if (submission.message.tag == kTooLong) {
    complete(submission.request, GRADCUBE_EMISMATCH, 0, submission.count + (sends ? 0 : 1));
  } else if (submission.message.tag == kLie) {
    complete(submission.request, GRADCUBE_OK, 0, submission.count + 1);
  } else if (submission.message.tag == kTooFar) {
    complete(submission.request, GRADCUBE_EINVAL, 0, 0);
  } else {
    if (!sends) std::memset(region_ + submission.offset, kReceived, submission.message.tag);
    complete(submission.request, GRADCUBE_OK, 0, sends ? submission.count : submission.message.tag);
  }
  return true;
}

bool FakeSession::push(const shared::Submission& submission) {
  if (!is_push(submission)) return false;
  was_pushed_to_ = true;
  if (hub_ == nullptr || submission.push.hub != last_wish_.number) {
    complete(submission.request, GRADCUBE_EINVAL);
  } else {
    hub_->push(submission, region_ + submission.offset);
    const auto kind = static_cast<shared::PushKind>(submission.push.kind);
    const bool fails =
        (job_ == "gradientless" && kind == shared::PushKind::gradients) ||
        (job_ == "planeless" && kind == shared::PushKind::saved) ||
        (job_ == "restoreless" && kind == shared::PushKind::restored && ++restored_ > 1);
    complete(submission.request, fails ? GRADCUBE_EPEER : GRADCUBE_OK);
  }
  return true;
}

// What befalls the hub of a job at its barriers, before they end.
void FakeSession::strike_hub(const shared::Submission& submission) {
  if (hub_ == nullptr || !is_barrier(submission)) return;
  if (job_ == "bereft") {
    notify(shared::MessageType::failure, GRADCUBE_EPEER, kFailure, ++notices_);
    hub_->end(GRADCUBE_EPEER, notices_);
  } else if (job_ == "dispossessed") {
    hub_->take_back();
  }
}

// In "dissent-N" rank 0 says in the Nth all-gather after the first push that it could not; in
// "ahead-N", that it has come to the next step; in "divided", that its hub is of a later epoch.
void FakeSession::dissent(const shared::Submission& submission) {
  if (!is_collective(submission, shared::CollectiveKind::all_gather)) return;
  if (was_pushed_to_) ++gathers_;
  const std::string number = std::to_string(gathers_);
  Said its;
  std::memcpy(&its, region_ + submission.offset, sizeof(its));
  if (job_ == "divided" && its.step == Step::make_hub) {
    ++its.generation;
  } else if (job_ == "dissent-" + number) {
    its.code = GRADCUBE_ESYSTEM;
  } else if (job_ == "ahead-" + number) {
    its.step = static_cast<Step>(static_cast<std::uint64_t>(its.step) + 1);
  }
  std::memcpy(region_ + submission.offset, &its, sizeof(its));
}

// What waits here is withdrawn; all else has met the other trainer's.
void FakeSession::withdraw(const shared::Submission& withdrawal) {
  const auto is_it = [&](const shared::Submission& waiting) {
    return waiting.request == withdrawal.request &&
           waiting.message.place == withdrawal.message.place;
  };
  if (std::erase_if(waiting_, is_it) != 0) complete(withdrawal.request, GRADCUBE_ECANCELED);
}

bool FakeSession::misbehave() {
  if (job_ == "scold") {
    notify(shared::MessageType::closing, GRADCUBE_EPROTOCOL, kClosing);
  } else if (job_ == "scribble") {
    complete(1'000'000, GRADCUBE_OK);
    return false;
  } else if (job_ != "die") {
    return false;
  }
  finished_ = true;
  return true;
}

void FakeSession::complete(std::uint64_t request, int code, std::uint32_t notice,
                           std::uint64_t bytes) {
  const shared::Completion completion{request, code, notice, bytes};
  std::memcpy(
      region_ + shared::kCompletions + completion_tail_ % shared::kRingEntries * sizeof(completion),
      &completion, sizeof(completion));
  shared::RegionHeader& ring = header();
  ring.completion_tail.store(++completion_tail_, std::memory_order_seq_cst);
  if (ring.trainer_asleep.load(std::memory_order_seq_cst) != 0) {
    ::send(doorbell_.get(), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

bool FakeSession::about_to_sleep() {
  if (region_ == nullptr) return true;
  shared::RegionHeader& ring = header();
  ring.daemon_asleep.store(1, std::memory_order_seq_cst);
  return ring.submission_tail.load(std::memory_order_seq_cst) == submission_head_;
}

int FakeSession::awake() {
  if (region_ == nullptr) return 0;
  header().daemon_asleep.store(0, std::memory_order_seq_cst);
  char rings[64];
  const ssize_t heard = ::recv(doorbell_.get(), rings, sizeof(rings), MSG_DONTWAIT);
  return heard > 0 ? static_cast<int>(heard) : 0;
}

}  // namespace gradcube::trainer
