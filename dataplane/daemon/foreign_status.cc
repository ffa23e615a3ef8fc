#include "dataplane/daemon/foreign_status.h"

#include <array>
#include <cmath>
#include <string>

#include "control/base/printable.h"
#include "control/plan/topology.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kDeepest = 8;
constexpr std::size_t kLongestText = 4096;
// Of one object: looking for a key takes time in their number.
constexpr std::size_t kMostKeys = 128;

// What a status looks like. A word is a kind; after it '?' stands for "or null". A list has one
// element here, which all of its elements are like. "*" is the kind of all keys that are not named.
const Json& form_of_status() {
  static const Json form = Json::parse(R"({
    "version": "text", "pid": "count", "uptime_seconds": "number", "algorithm": "text",
    "segment_bytes": "count", "window": "count", "instruction_set": "text", "huge_pages": "flag",
    "lcores": ["count"], "stalls": ["count"],
    "memory": {
      "daemon_bytes": "count", "pool_bytes": "count", "packets_reserved_bytes": "count",
      "packets_reservable_bytes": "count", "trainer_bytes": "count", "trainer_quota_bytes": "count",
      "users": [{"uid": "count", "bytes": "count"}]},
    "servers": [{
      "address": "address", "socket": "text", "trainers": "count",
      "ports": [{"level": "count", "port": "count", "rate_bps": "count?", "down": ["address"],
                 "wrong": "text?", "*": "count"}]}],
    "jobs": [{
      "name": "text", "id": "count", "epoch": "count", "state": "text", "why": "text",
      "lanes": [{"algorithm": "text", "priority": "number"}], "weight": "count",
      "reproducible": "flag", "trainers_per_server": "count", "members": ["address"],
      "window": "count", "packets_reserved_bytes": "count",
      "trainers": [{"address": "address", "local": "count", "pid": "count", "uid": "count",
                    "heap_bytes": "count", "submitted": "count", "completed": "count",
                    "messages_waiting": "count", "messages_begun": "count",
                    "messages_done": "count"}],
      "collectives": "count", "waiting_for": ["address"], "waiting_ms": "count?"}],
    "hubs": [{
      "job": "text", "id": "count", "number": "count", "address": "address", "state": "text",
      "why": "text", "members": ["address"], "trainers_per_server": "count", "uid": "count",
      "keys": "count", "weights_bytes": "count", "memory_bytes": "count",
      "packets_reserved_bytes": "count"}],
    "flow_count": "count",
    "flows": [{
      "job": "text", "server": "address", "lane": "count", "thread": "count", "stage": "text",
      "peer": "address", "srtt_us": "number", "*": "count"}],
    "counters": {"dropped": {"*": "count"}, "*": "count"}
  })");
  return form;
}

class Checker {
 public:
  explicit Checker(const bcube::AddressSpace& space) : space_(space) {}

  // What is left of the value, or discarded if it is not of the form.
  Json check(const Json& value, const Json& form) const {
    if (form.is_object()) return value.is_object() ? check_object(value, form) : kBad;
    if (form.is_array()) return value.is_array() ? check_list(value, form[0]) : kBad;
    std::string kind = form.get<std::string>();
    if (kind.back() == '?') {
      if (value.is_null()) return value;
      kind.pop_back();
    }
    return check_kind(value, kind);
  }

 private:
  Json check_object(const Json& value, const Json& form) const {
    Json known = Json::object();
    for (const auto& [key, inner] : form.items()) {
      if (key == "*") continue;
      if (!value.contains(key)) return kBad;
      known[key] = check(value[key], inner);
      if (known[key].is_discarded()) return kBad;
    }
    if (!form.contains("*")) return known;
    for (const auto& [key, inner] : value.items()) {
      if (known.contains(key) || key.size() > control::kShownBytes) continue;
      Json one = check(inner, form["*"]);
      if (one.is_discarded()) return kBad;
      known[control::printable(key)] = std::move(one);
    }
    return known;
  }

  Json check_list(const Json& value, const Json& form) const {
    Json list = Json::array();
    for (const Json& item : value) {
      list.push_back(check(item, form));
      if (list.back().is_discarded()) return kBad;
    }
    return list;
  }

  Json check_kind(const Json& value, std::string_view kind) const {
    if (kind == "count") return value.is_number_unsigned() ? value : kBad;
    if (kind == "flag") return value.is_boolean() ? value : kBad;
    if (kind == "number") {
      return value.is_number() && std::isfinite(value.get<double>()) ? value : kBad;
    }
    if (kind == "address") return is_address(value) ? value : kBad;
    if (!value.is_string()) return kBad;
    return control::printable(value.get_ref<const std::string&>(), kLongestText);
  }

  bool is_address(const Json& value) const {
    if (!value.is_array() || value.size() != space_.levels()) return false;
    for (unsigned i = 0; i < space_.levels(); ++i) {
      const unsigned level = space_.levels() - 1 - i;
      if (!value[i].is_number_unsigned() || value[i].get<std::uint64_t>() >= space_.radix(level)) {
        return false;
      }
    }
    return true;
  }

  const Json kBad = Json(Json::value_t::discarded);
  const bcube::AddressSpace& space_;
};

}  // namespace

std::optional<Json> checked_status(std::string_view text, const bcube::AddressSpace& space,
                                   bcube::ServerId server) {
  bool too_much = false;
  std::array<std::size_t, kDeepest + 2> keys{};  // by depth
  const auto look = [&](int depth, Json::parse_event_t event, Json&) {
    too_much = too_much || depth > kDeepest;
    if (too_much) return false;
    const auto at = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) keys[at + 1] = 0;
    if (event == Json::parse_event_t::key) too_much = ++keys[at] > kMostKeys;
    return !too_much;
  };
  const Json told = Json::parse(text, look, /*allow_exceptions=*/false);
  if (told.is_discarded() || too_much || !told.is_object()) return std::nullopt;
  Json status = Checker(space).check(told, form_of_status());
  if (status.is_discarded() || status["servers"].size() != 1 ||
      status["servers"][0]["address"] != control::address_json(space, server) ||
      status["servers"][0]["ports"].size() != space.ports() ||
      status["lcores"].size() != status["stalls"].size()) {
    return std::nullopt;
  }
  return status;
}

}  // namespace gradcube::dataplane
