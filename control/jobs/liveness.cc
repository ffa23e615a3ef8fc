#include "control/jobs/liveness.h"

#include <algorithm>

namespace gradcube::control {

void Liveness::on_heard(bcube::ServerId server, Instant now) {
  const auto found = due_.find(server);
  if (found != due_.end()) found->second = std::max(found->second, now + limit_);
}

std::vector<bcube::ServerId> Liveness::take_silent(Instant now) {
  std::vector<bcube::ServerId> silent;
  for (auto& [server, due] : due_) {
    if (now < due) continue;
    due = now + limit_;
    silent.push_back(server);
  }
  return silent;
}

std::optional<Instant> Liveness::deadline() const {
  std::optional<Instant> first;
  for (const auto& [server, due] : due_) first = earlier(first, due);
  return first;
}

}  // namespace gradcube::control
