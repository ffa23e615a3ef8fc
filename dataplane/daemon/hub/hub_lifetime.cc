#include "dataplane/daemon/hub/hub_lifetime.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <system_error>
#include <utility>

#include "control/base/errors.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// Of what was given up and still runs. Who wishes for one hub after another would else have a
// thread and a table for each.
constexpr std::size_t kMostDropped = 4;

}  // namespace

void HubLifetime::ask(unsigned local, HubWish wish, const HubDesign& design,
                      MemoryQuota::Charge charge) {
  const bool exists = making_ != nullptr;
  if (wish.number == wish_.number && !exists && code_ != GRADCUBE_OK) {
    return refuse(local, wish.number, code_, why_);
  }
  if (wish.number < wish_.number || (wish.number == wish_.number && !exists)) {
    return refuse(local, wish.number, GRADCUBE_EINVAL,
                  fmt::format("hub {} of the job is over", wish.number));
  }
  if (exists && wish.number == wish_.number) {
    if (wish.lane == wish_.lane) return waiting_.push_back(local);
    return refuse(local, wish.number, GRADCUBE_EMISMATCH,
                  "another trainer of this server has the hub on another lane");
  }
  if (hub_ != nullptr) {
    return refuse(local, wish.number, GRADCUBE_EINVAL, "the job has a hub: free it first");
  }
  if (dropped_.size() >= kMostDropped) {
    return refuse(local, wish.number, GRADCUBE_EAGAIN,
                  "hubs of the job that nobody waits for are still being made: try again later");
  }
  answer_all(GRADCUBE_EINVAL, fmt::format("hub {} of the job is over", wish_.number));
  drop();
  forget();
  waiting_.push_back(local);
  make(std::move(wish), design, std::move(charge));
}

void HubLifetime::make(HubWish wish, const HubDesign& design, MemoryQuota::Charge charge) {
  code_ = GRADCUBE_OK;
  wish_ = wish;
  wish_.table = {};
  dropped_.reserve(dropped_.size() + 1);
  try {
    making_ = std::make_unique<HubMaking>(std::move(wish), design, std::move(charge));
  } catch (const std::system_error& error) {  // there is no thread
    answer_all(GRADCUBE_ESYSTEM, why_not(error.what()));
  }
}

std::string HubLifetime::why_not(std::string_view reason) const {
  return fmt::format("job \"{}\": its hub on server {} cannot be made: {}", wish_.job, wish_.server,
                     reason);
}

bool HubLifetime::waits(unsigned local) const {
  return std::ranges::find(waiting_, local) != waiting_.end() ||
         std::ranges::find(answers_, local, &HubAnswer::local) != answers_.end();
}

void HubLifetime::refuse(unsigned local, std::uint32_t number, std::int32_t code,
                         std::string text) {
  answers_.push_back({local, number, code, std::move(text)});
}

std::vector<HubAnswer> HubLifetime::work(
    const std::function<void(const std::shared_ptr<ServerHub>&)>& use, const IsWhole& is_whole) {
  std::erase_if(dropped_, [](const auto& each) { return each->is_idle(); });
  if (making_ != nullptr && hub_ == nullptr && making_->go_on()) {
    try {
      std::shared_ptr<ServerHub> made = making_->hub();
      use(made);
      hub_ = std::move(made);
    } catch (const control::UsageError& error) {
      answer_all(GRADCUBE_EINVAL, error.what());
    } catch (const std::bad_alloc&) {
      answer_all(GRADCUBE_ENOMEM, why_not("the host has no memory left for it"));
    } catch (const std::exception& error) {
      answer_all(GRADCUBE_ENOMEM, error.what());
    }
    if (hub_ == nullptr) drop();
  }
  if (hub_ != nullptr && (!is_whole || is_whole(*hub_))) answer_all(GRADCUBE_OK, "");
  return std::exchange(answers_, {});
}

void HubLifetime::end(std::int32_t code, const std::string& text, std::uint32_t notice) {
  fail(code, text, notice);
  code_ = GRADCUBE_OK;
}

void HubLifetime::fail(std::int32_t code, const std::string& text, std::uint32_t notice) {
  drop();
  if (hub_ != nullptr) {
    hub_->set_end(code, notice);
    ended_ = std::move(hub_);
  }
  answer_all(code, text);
}

bool HubLifetime::is_freed_by(unsigned local) const {
  return std::ranges::find(freed_, local) != freed_.end();
}

std::shared_ptr<ServerHub> HubLifetime::read_by(unsigned local) const {
  if (is_freed_by(local)) return nullptr;
  return hub_ != nullptr ? hub_ : ended_;
}

void HubLifetime::outlive_daemon() {
  for (const auto& each : {hub_, ended_}) {
    if (each != nullptr) each->outlive_daemon();
  }
}

void HubLifetime::forget() {
  if (hub_ != nullptr) hub_->readers_have_left();
  if (ended_ != nullptr) ended_->readers_have_left();
  ended_.reset();
  freed_.clear();
}

void HubLifetime::drop() {
  if (making_ != nullptr && !making_->is_idle()) dropped_.push_back(std::move(making_));
  making_.reset();
}

// Where there is no memory nobody is told anything, and all still wait.
void HubLifetime::answer_all(std::int32_t code, const std::string& text) {
  std::vector<HubAnswer> answers = answers_;
  for (const unsigned local : waiting_) {
    HubAnswer& answer = answers.emplace_back(HubAnswer{local, wish_.number, code, text});
    if (code != GRADCUBE_OK) continue;
    answer.bytes = hub_->model().bytes();
    answer.descriptor = hub_->memory().descriptor();
  }
  why_ = text;
  code_ = code;
  answers_.swap(answers);
  waiting_.clear();
}

std::vector<std::unique_ptr<UnfinishedWork>> HubLifetime::take_dropped() {
  drop();
  return std::move(dropped_);
}

}  // namespace gradcube::dataplane
