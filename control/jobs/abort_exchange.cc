#include "control/jobs/abort_exchange.h"

#include <algorithm>
#include <utility>

namespace gradcube::control {

void AbortExchange::set_completed(LaneNumbers completed) {
  completed_ = std::move(completed);
  decide_if_agreed();
}

void AbortExchange::give_up(bcube::ServerId server) {
  if (server == own_ || !members_.contains(server)) return;
  gone_.insert(server);
  decide_if_agreed();
}

void AbortExchange::decide(LaneNumbers common) {
  if (!over()) common_ = std::move(common);
}

void AbortExchange::on_abort(bcube::ServerId from, const Abort& abort) {
  if (from == own_ || !members_.contains(from) || gone_.contains(from)) return;
  const Servers told(abort.gone.begin(), abort.gone.end());
  if (abort.withdrawn || told.contains(own_)) {
    give_up(from);
    return;
  }
  for (const bcube::ServerId server : told) {
    if (members_.contains(server)) gone_.insert(server);
  }
  Heard& heard = heard_[from];
  if (told.size() >= heard.gone.size()) heard.gone = told;
  if (abort.completed.has_value()) heard.completed = abort.completed;
  heard.decided = heard.decided || abort.common.has_value();
  if (abort.common.has_value()) decide(*abort.common);
  decide_if_agreed();
}

void AbortExchange::decide_if_agreed() {
  if (over() || !completed_.has_value()) return;
  LaneNumbers least = *completed_;
  for (const bcube::ServerId server : members_) {
    if (server == own_ || gone_.contains(server)) continue;
    const auto heard = heard_.find(server);
    if (heard == heard_.end() || heard->second.gone != gone_) return;
    if (!heard->second.completed.has_value()) return;
    const LaneNumbers& other = *heard->second.completed;
    for (std::size_t lane = 0; lane < least.size(); ++lane) {
      least[lane] = std::min(least[lane], lane < other.size() ? other[lane] : 0);
    }
  }
  common_ = std::move(least);
}

AbortExchange::Servers AbortExchange::silent() const {
  Servers silent;
  for (const bcube::ServerId server : members_) {
    if (server == own_ || gone_.contains(server)) continue;
    const auto heard = heard_.find(server);
    if (heard == heard_.end() || !heard->second.completed.has_value()) silent.insert(server);
  }
  return silent;
}

AbortExchange::Servers AbortExchange::undecided() const {
  Servers undecided;
  for (const bcube::ServerId server : members_) {
    if (server == own_ || gone_.contains(server)) continue;
    const auto heard = heard_.find(server);
    if (heard == heard_.end() || !heard->second.decided) undecided.insert(server);
  }
  return undecided;
}

Abort AbortExchange::message(const std::string& why) const {
  return {why, {gone_.begin(), gone_.end()}, completed_, common_, withdrawn_};
}

}  // namespace gradcube::control
