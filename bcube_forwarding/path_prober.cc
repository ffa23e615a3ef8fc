#include "bcube_forwarding/path_prober.h"

#include <algorithm>
#include <utility>

namespace gradcube::bcube {

void PathProber::begin_round(std::vector<ServerId> servers, Time now) {
  next_round_ = now + jittered(interval_);
  // Those of the last round whose turn has not come stay first, if they are still sent to.
  std::erase_if(turns_, [&servers](ServerId server) { return std::erase(servers, server) == 0; });
  // Not std::shuffle(), which draws differently with each library.
  for (std::size_t left = servers.size(); left > 1; --left) {
    std::swap(servers[left - 1], servers[random_() % left]);
  }
  turns_.insert(turns_.end(), servers.begin(), servers.end());
}

void PathProber::ask(ServerId server) {
  std::erase_if(asked_, [server](const Asked& asked) { return asked.news.server == server; });
  asked_.push_back({{server, {}}});
  if (asked_.size() > kMostAsked) asked_.pop_front();
  if (std::find(wanted_.begin(), wanted_.end(), server) == wanted_.end()) {
    wanted_.push_back(server);
  }
  if (wanted_.size() > kMostAsked) wanted_.pop_front();
}

std::optional<ServerId> PathProber::next(Time now) {
  if (probing_) return std::nullopt;
  if (queue().empty() || (wanted_.empty() && now < next_turn_)) return std::nullopt;
  return queue().front();
}

std::span<const std::uint32_t> PathProber::begin(ServerId server, std::span<const Route> paths,
                                                 Time now) {
  current_.server = server;
  current_.paths.clear();
  numbers_.clear();
  for (const Route& route : paths.first(std::min(paths.size(), kMostPaths))) {
    PathNews& path = current_.paths.emplace_back();
    path.route = route;
    numbers_.push_back(static_cast<std::uint32_t>(random_()));
  }
  if (!queue().empty() && queue().front() == server) queue().pop_front();
  probing_ = true;
  began_ = now;
  waits_until_ = now + kPatience;
  const auto left = std::min(turns_.size() + 1, kMostInARound);
  next_turn_ = now + jittered(interval_) / static_cast<Time>(left);
  return numbers_;
}

bool PathProber::on_answer(ServerId from, std::uint32_t number, std::uint64_t bits_per_second_left,
                           Time now) {
  if (!probing_ || from != current_.server) return false;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    PathNews& path = current_.paths[i];
    if (numbers_[i] != number || path.state != PathNews::State::waiting) continue;
    path.state = PathNews::State::answers;
    path.round_trip = now - began_;
    path.bits_per_second_left = bits_per_second_left;
    return true;
  }
  return false;
}

void PathProber::on_move(Time now) {
  next_turn_ = now + jittered(interval_);
  next_round_ = std::max(next_round_, next_turn_);
}

bool PathProber::all_answered() const {
  return std::none_of(current_.paths.begin(), current_.paths.end(),
                      [](const PathNews& path) { return path.state == PathNews::State::waiting; });
}

const PathProber::News* PathProber::take_result(Time now) {
  if (!probing_ || (now < waits_until_ && !all_answered())) return nullptr;
  for (PathNews& path : current_.paths) {
    if (path.state == PathNews::State::waiting) path.state = PathNews::State::silent;
  }
  for (Asked& asked : asked_) {
    if (asked.news.server == current_.server) asked = {current_, true};
  }
  probing_ = false;
  return &current_;
}

const PathProber::News* PathProber::asked(ServerId server) const {
  const auto found = std::find_if(asked_.begin(), asked_.end(), [server](const Asked& asked) {
    return asked.known && asked.news.server == server;
  });
  return found == asked_.end() ? nullptr : &found->news;
}

PathProber::Time PathProber::next_event(bool sends) const {
  if (probing_) return all_answered() ? began_ : waits_until_;
  if (!wanted_.empty()) return 0;
  if (!sends || interval_ == 0) return kNever;
  return turns_.empty() ? next_round_ : std::min(next_round_, next_turn_);
}

}  // namespace gradcube::bcube
