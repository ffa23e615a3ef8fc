#include "control/jobs/hub/hub_fetch.h"

#include <algorithm>
#include <utility>

namespace gradcube::control {

HubFetch::HubFetch(const NodeMessage& message, const HubCall& call, Instant now)
    : own_(message.to), caller_(message.from), call_(call), heard_(now) {
  state_.hub = call.hub;
}

void HubFetch::on_call(Instant now, NodeMessages& out) {
  heard_ = now;
  if (fetched_ || state_.progress == HubState::Progress::failed) return tell(out);
  ask(out);
}

// Only the part that was asked for is taken, and only if it is as long as it must be.
void HubFetch::on_part(const HubPart& part, Instant now, NodeMessages& out) {
  heard_ = now;
  if (fetched_ || part.part * kHubPartBytes != table_.size()) return;
  if (part.bytes.size() != std::min(kHubPartBytes, call_.table_bytes - table_.size())) return;
  table_ += part.bytes;
  fetched_ = table_.size() == call_.table_bytes;
  if (!fetched_) ask(out);
}

void HubFetch::ask(NodeMessages& out) const {
  const auto next = static_cast<std::uint32_t>(table_.size() / kHubPartBytes);
  out.push_back({own_, caller_, HubAsk{call_.hub, next}});
}

void HubFetch::set_state(HubState::Progress progress, std::int32_t code, std::string why) {
  state_.progress = progress;
  state_.code = code;
  state_.why = std::move(why);
}

}  // namespace gradcube::control
