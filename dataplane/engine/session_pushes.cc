// A session's pushes to its job's hub.

#include <bit>
#include <cmath>

#include "dataplane/engine/session.h"

namespace gradcube::dataplane {

Session::Take Session::take_push(Seat& seat, unsigned local, const shared::Submission& submission) {
  if (hub_ == nullptr || submission.paths != hub_->number()) {
    if (hub_code_ == 0) return violate(local, "a push to a hub that there is not");
    count_taken(seat);
    complete(seat, submission.request, hub_code_, hub_notice_);
    publish_completions(seat);
    return Take::taken;
  }
  CollectiveRequest memory;
  if (const char* violation = check_push(seat, local, submission, memory)) {
    return violate(local, violation);
  }
  const bool gradients = submission.kind == static_cast<std::uint8_t>(shared::Kind::push_gradients);
  const double rate = std::bit_cast<double>(submission.tag);
  hub_->board().push(
      submission.root, local,
      {.request = submission.request,
       .kind = gradients ? HubPush::Kind::gradients : HubPush::Kind::weights,
       .learning_rate = rate == shared::kOwnRate ? hub_->model().settings().learning_rate : rate,
       .buffer = memory.buffer});
  count_taken(seat);
  return Take::taken;
}

const char* Session::check_push(const Seat& seat, unsigned local,
                                const shared::Submission& submission,
                                CollectiveRequest& memory) const {
  const auto& keys = hub_->model().keys();
  if (submission.root >= keys.size()) return "a push of a key that its hub has not";
  const control::hub::HubKey& key = keys[submission.root];
  if (submission.count != key.elements || submission.dtype != static_cast<unsigned>(key.type)) {
    return "a push that is not as its key";
  }
  const double rate = std::bit_cast<double>(submission.tag);
  if (rate != shared::kOwnRate && !(std::isfinite(rate) && rate >= 0)) {
    return "a push with a learning rate that is none";
  }
  if (!hub_->board().may_push(submission.root, local)) {
    return "a push of a key whose last push has not ended";
  }
  memory.carrier = {key.type, aggregation::Operation::sum};
  return check_buffer(*seat.region, submission, memory);
}

void Session::end_hub(std::int32_t code, std::uint32_t notice) {
  if (hub_ == nullptr) return;
  hub_->board().fail_all([&](unsigned local, std::uint64_t request) {
    complete(seats_[local], request, code, notice);
  });
  hub_ = nullptr;
  hub_code_ = code;
  hub_notice_ = notice;
  for_each_seated([](const Seat& seat) { publish_completions(seat); });
}

unsigned Session::end_pushes() {
  const unsigned rounds = hub_->board().take_ended(
      [this](unsigned local, std::uint64_t request) { complete(seats_[local], request, 0, 0); });
  if (rounds != 0) for_each_seated([](const Seat& seat) { publish_completions(seat); });
  return rounds;
}

}  // namespace gradcube::dataplane
