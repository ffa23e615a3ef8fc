#include "control/jobs/liveness.h"

#include <algorithm>

namespace gradcube::control {

void Liveness::on_heard(bcube::ServerId server, Instant now) {
  const auto found = heard_.find(server);
  if (found == heard_.end()) return;
  found->second.at = std::max(found->second.at, now);
  found->second.silent = false;
}

std::vector<bcube::ServerId> Liveness::take_silent(Instant now) {
  std::vector<bcube::ServerId> fresh;
  for (auto& [server, heard] : heard_) {
    if (heard.silent || now - heard.at < limit_) continue;
    heard.silent = true;
    fresh.push_back(server);
  }
  return fresh;
}

std::optional<Instant> Liveness::deadline() const {
  std::optional<Instant> first;
  for (const auto& [server, heard] : heard_) {
    if (heard.silent) continue;
    const Instant due = heard.at + limit_;
    if (!first.has_value() || due < *first) first = due;
  }
  return first;
}

std::optional<Instant> Liveness::last_heard(bcube::ServerId server) const {
  const auto found = heard_.find(server);
  if (found == heard_.end()) return std::nullopt;
  return found->second.at;
}

}  // namespace gradcube::control
