#include "control/jobs/status_exchange.h"

#include <algorithm>
#include <utility>

namespace gradcube::control {

StatusAsker::StatusAsker(bcube::ServerId own, std::vector<bcube::ServerId> servers,
                         std::uint64_t first)
    : own_(own),
      servers_(std::move(servers)),
      current_(first),
      wanted_(first),
      finished_(first),
      next_(servers_.size()) {}

std::uint64_t StatusAsker::begin() {
  wanted_ = current_ + 1;
  return wanted_;
}

void StatusAsker::start() {
  current_ = wanted_;
  next_ = 0;
  bytes_ = 0;
  gathered_.clear();
}

void StatusAsker::on_time(Instant now, NodeMessages& out) {
  if (finished_ == current_) {
    if (wanted_ == current_) return;
    start();
  }
  std::erase_if(asked_, [&](const auto& each) {
    if (now < std::min(each.second.deadline, each.second.last_deadline)) return false;
    gathered_[each.first].why =
        "it did not answer in time: it does not run, has other settings, or no link leads to it";
    return true;
  });
  ask_what_is_due(now, out);
  if (!asked_.empty() || next_ < servers_.size()) return;
  finished_ = current_;
  answers_ = std::exchange(gathered_, {});
}

// Those that were asked before, then others.
void StatusAsker::ask_what_is_due(Instant now, NodeMessages& out) {
  std::size_t room = kAwaited - std::min(kAwaited, awaited(now));
  for (auto asked = asked_.begin(); asked != asked_.end() && room != 0; ++asked) {
    if (now < asked->second.repeat) continue;
    ask(asked->first, asked->second, now, out);
    --room;
  }
  for (; asked_.size() < kAtOnce && next_ < servers_.size() && room != 0; ++next_) {
    const bcube::ServerId server = servers_[next_];
    if (server == own_) continue;
    Asked& asked = asked_[server];
    asked.deadline = now + kPatience;
    asked.last_deadline = now + kLongest;
    ask(server, asked, now, out);
    --room;
  }
}

std::size_t StatusAsker::awaited(Instant now) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      asked_, [now](const auto& each) { return now < each.second.awaited_until; }));
}

void StatusAsker::ask(bcube::ServerId server, Asked& asked, Instant now, NodeMessages& out) {
  asked.awaited_until = now + kRepeat;
  asked.repeat = now + asked.pause;
  asked.pause = std::min(2 * asked.pause, kSlowestRepeat);
  out.push_back({own_, server, StatusAsk{current_, asked.next}});
}

void StatusAsker::end(bcube::ServerId server, Answer answer) {
  asked_.erase(server);
  gathered_[server] = std::move(answer);
}

void StatusAsker::on_part(bcube::ServerId from, const StatusPart& part, Instant now,
                          NodeMessages& out) {
  const auto found = asked_.find(from);
  if (found == asked_.end() || part.inquiry != current_) return;
  Asked& asked = found->second;
  if (part.part != asked.next || (asked.parts != 0 && part.parts != asked.parts)) return;
  bytes_ += part.text.size();
  if (bytes_ > kMostBytes) return end(from, {"", "the answers of all servers are too long"});
  asked.text += part.text;
  asked.parts = part.parts;
  asked.deadline = now + kPatience;
  asked.pause = kRepeat;
  if (++asked.next < asked.parts) return ask(from, asked, now, out);
  Answer answer{std::move(asked.text), ""};
  if (answer.text.empty()) answer.why = "its status is too long to be sent";
  end(from, std::move(answer));
}

StatusAnswerer::StatusAnswerer(bcube::ServerId own, std::function<std::string()> status)
    : own_(own), status_(std::move(status)) {}

void StatusAnswerer::on_ask(bcube::ServerId from, const StatusAsk& ask, Instant now,
                            NodeMessages& out) {
  if (now - round_ >= kRound) {
    round_ = now;
    sent_ = 0;
  }
  if (sent_ >= kMostParts) return;
  const Text* text = text_for(from, ask, now);
  if (text == nullptr) return;
  const std::size_t size = (*text)->size();
  const auto parts = std::max<std::size_t>(1, (size + kStatusPartBytes - 1) / kStatusPartBytes);
  if (ask.part >= parts) return;
  ++sent_;
  out.push_back({own_, from,
                 StatusPart{ask.inquiry, ask.part, static_cast<std::uint32_t>(parts),
                            (*text)->substr(ask.part * kStatusPartBytes, kStatusPartBytes)}});
}

// Null if it is not kept any more, and no first part.
const StatusAnswerer::Text* StatusAnswerer::text_for(bcube::ServerId from, const StatusAsk& ask,
                                                     Instant now) {
  const auto of_asker =
      std::ranges::find_if(kept_, [&](const Kept& kept) { return kept.asker == from; });
  if (of_asker != kept_.end() && of_asker->inquiry == ask.inquiry) return &of_asker->text;
  if (ask.part != 0) return nullptr;
  if (of_asker != kept_.end()) kept_.erase(of_asker);
  if (fresh_ == nullptr || now - taken_ >= kFreshFor) {
    std::string text = status_();
    if (text.size() > kLongestStatus) text.clear();
    fresh_ = std::make_shared<const std::string>(std::move(text));
    taken_ = now;
  }
  if (kept_.size() >= kMostKept) kept_.pop_front();
  kept_.push_back({from, ask.inquiry, fresh_});
  return &kept_.back().text;
}

}  // namespace gradcube::control
