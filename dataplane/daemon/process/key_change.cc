#include "dataplane/daemon/process/key_change.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/base/hkdf.h"
#include "control/settings/cluster_key.h"
#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {
namespace {

using Json = nlohmann::ordered_json;
using SteadyClock = KeyChange::SteadyClock;

// That a frame by the former key may be on its way, or a job that begins by it wait for a server.
constexpr auto kOnTheWay = std::chrono::seconds(5);
constexpr std::int64_t kMostWindow = 60 * 60 * 1000;  // ms

std::chrono::milliseconds window_of(const nlohmann::json& request) {
  const auto window = request.find("window_ms");
  if (window == request.end() || !window->is_number_integer() || window->get<std::int64_t>() < 0 ||
      window->get<std::int64_t>() > kMostWindow) {
    throw control::UsageError(
        fmt::format("rekey: \"window_ms\": expected 0 to {} milliseconds", kMostWindow));
  }
  return std::chrono::milliseconds(window->get<std::int64_t>());
}

std::int64_t ms_until(SteadyClock::time_point then, SteadyClock::time_point now) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - now);
  return std::max<std::int64_t>(left.count(), 0);
}

}  // namespace

Json KeyChange::begin(const nlohmann::json& request, SteadyClock::time_point now) {
  const std::chrono::milliseconds window = window_of(request);
  const ClusterKeys* keys = cluster_.keys();
  if (keys == nullptr) {
    throw control::SetupError(
        "rekey: frames of this cluster carry no MAC, so there is no key to change");
  }
  const control::Secret secret = control::read_key_file(file_);
  const control::KeyId key = FrameKeys::id_of(secret);
  const bool is_begun = end_at_.has_value();
  if (is_begun && exchange_at_.has_value() && key == keys->own_id()) {
    end();  // the former is back in the file: as if nothing had been said
    return report(now);
  }
  if (is_begun && key != (exchange_at_.has_value() ? keys->other_id() : keys->own_id())) {
    throw control::SetupError(
        fmt::format("rekey: {} has another key than that of the change that is under way, which "
                    "ends in {} ms: type it again then, on every host",
                    file_.string(), ms_until(*end_at_, now)));
  }
  if (!is_begun && key == keys->own_id()) return report(now);
  if (!is_begun) {
    cluster_.take_key(secret);
    exchange_at_ = now + window;
    end_at_ = now + 2 * window;
    if (window != window.zero()) *end_at_ += kOnTheWay;
    log::info("rekey: takes frames by the key {}, too", control::key_id_text(key));
  } else if (window == std::chrono::milliseconds(0)) {
    if (exchange_at_.has_value()) exchange_at_ = now;
    end_at_ = now;
  }
  tick(now);
  return report(now);
}

void KeyChange::tick(SteadyClock::time_point now) {
  if (exchange_at_.has_value() && now >= *exchange_at_) exchange();
  if (end_at_.has_value() && now >= *end_at_) end();
}

void KeyChange::exchange() {
  cluster_.exchange_keys();
  exchange_at_.reset();
  log::info("rekey: sends by the key {}", control::key_id_text(cluster_.keys()->own_id()));
}

void KeyChange::end() {
  cluster_.drop_other_key();
  exchange_at_.reset();
  end_at_.reset();
  log::info("rekey: takes frames by the key {} alone",
            control::key_id_text(cluster_.keys()->own_id()));
}

Json KeyChange::report(SteadyClock::time_point now) const {
  const ClusterKeys* keys = cluster_.keys();
  if (keys == nullptr) return Json::object();
  Json report = {{"key", control::key_id_text(keys->own_id())}};
  if (!end_at_.has_value()) return report;
  report["other_key"] = control::key_id_text(*keys->other_id());
  if (exchange_at_.has_value()) report["makes_in_ms"] = ms_until(*exchange_at_, now);
  report["ends_in_ms"] = ms_until(*end_at_, now);
  return report;
}

}  // namespace gradcube::dataplane
