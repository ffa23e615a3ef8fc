#include "control/jobs/hub/hub_caller.h"

#include <fmt/format.h>
#include <utility>
#include <variant>

namespace gradcube::control {

HubCaller::HubCaller(bcube::ServerId own, bcube::ServerId aggregator, std::string aggregator_text,
                     HubCall call, std::shared_ptr<const std::string> table, Instant now)
    : own_(own),
      aggregator_(aggregator),
      aggregator_text_(std::move(aggregator_text)),
      call_(std::move(call)),
      table_(std::move(table)),
      heard_(now),
      next_call_(now) {}

void HubCaller::on_message(const NodeMessage& message, Instant now, NodeMessages& out) {
  if (message.from != aggregator_ || failure_.has_value()) return;
  heard_ = now;
  if (const auto* ask = std::get_if<HubAsk>(&message.body)) {
    const std::size_t begin = ask->part * kHubPartBytes;
    if (begin >= table_->size()) return;
    out.push_back(
        {own_, aggregator_, HubPart{call_.hub, ask->part, table_->substr(begin, kHubPartBytes)}});
  } else if (const auto* state = std::get_if<HubState>(&message.body)) {
    if (state->progress == HubState::Progress::stands) call_.stands = true;
    if (state->progress == HubState::Progress::failed) failure_ = Failure{state->code, state->why};
  }
}

void HubCaller::on_time(Instant now, NodeMessages& out) {
  if (failure_.has_value()) return;
  if (now - heard_ >= kHubSilence) {
    failure_ = Failure{
        0, fmt::format("nothing is heard of the daemon on server {}, which aggregates the hub of "
                       "job \"{}\": it has ended, has other settings, or no link leads to it",
                       aggregator_text_, call_.job)};
    return;
  }
  if (now < next_call_) return;
  next_call_ = now + (call_.stands ? kPing : kRepeat);
  out.push_back({own_, aggregator_, call_});
}

void HubCaller::end(NodeMessages& out) const {
  out.push_back({own_, aggregator_, HubEnd{call_.hub}});
}

}  // namespace gradcube::control
