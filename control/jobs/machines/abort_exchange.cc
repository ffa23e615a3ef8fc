#include "control/jobs/machines/abort_exchange.h"

#include <algorithm>
#include <utility>

namespace gradcube::control {

AbortExchange::AbortExchange(bcube::ServerId own, Servers members)
    : own_(own), members_(std::move(members)), lacking_(members_) {
  lacking_.erase(own_);
  undecided_ = lacking_;
}

void AbortExchange::set_completed(LaneNumbers completed) {
  completed_ = std::move(completed);
  decide_if_agreed();
}

void AbortExchange::give_up(bcube::ServerId server) {
  if (server == own_ || !members_.contains(server)) return;
  count_out(server);
  decide_if_agreed();
}

// The set of members that are not counted has changed with it.
void AbortExchange::count_out(bcube::ServerId server) {
  if (!gone_.insert(server).second) return;
  undecided_.erase(server);
  recount();
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
    if (members_.contains(server)) count_out(server);
  }
  Heard& heard = heard_[from];
  if (told.size() >= heard.gone.size()) heard.gone = told;
  if (abort.completed.has_value()) heard.completed = abort.completed;
  heard.decided = heard.decided || abort.common.has_value();
  if (heard.decided) undecided_.erase(from);
  if (agrees(from)) {
    lacking_.erase(from);
  } else if (!gone_.contains(from)) {
    lacking_.insert(from);
  }
  if (abort.common.has_value()) decide(*abort.common);
  decide_if_agreed();
}

// Whether it has told the very same set as this one, with a count.
bool AbortExchange::agrees(bcube::ServerId server) const {
  const auto heard = heard_.find(server);
  return heard != heard_.end() && heard->second.gone == gone_ &&
         heard->second.completed.has_value();
}

void AbortExchange::recount() {
  lacking_.clear();
  for (const bcube::ServerId server : members_) {
    if (server != own_ && !gone_.contains(server) && !agrees(server)) lacking_.insert(server);
  }
}

void AbortExchange::decide_if_agreed() {
  if (over() || !completed_.has_value() || !lacking_.empty()) return;
  LaneNumbers least = *completed_;
  for (const auto& [server, heard] : heard_) {
    if (gone_.contains(server)) continue;
    const LaneNumbers& other = *heard.completed;
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

Abort AbortExchange::message(const std::string& why) const {
  return {why, {gone_.begin(), gone_.end()}, completed_, common_, withdrawn_};
}

}  // namespace gradcube::control
