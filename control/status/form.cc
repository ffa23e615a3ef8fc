#include "control/status/form.h"

#include <algorithm>
#include <unordered_map>

#include "control/base/json_text.h"

namespace gradcube::control::status {

namespace {

// Of one object, but for those that are named: however many others there are, what several daemons
// say is put together in a time that their statuses' length bounds.
constexpr std::size_t kMostFields = 256;

Reports values_of(const Reports& objects, const std::string& field) {
  Reports values;
  for (const Json* object : objects) {
    const auto found = object->find(field);
    if (found != object->end()) values.push_back(&*found);
  }
  return values;
}

Json merged_object(const Json& form, const Reports& objects) {
  Json whole = Json::object();
  const auto add = [&](const std::string& field) {
    if (field == "*" || field == "~" || whole.contains(field)) return;
    whole[field] = merged(form_of(form, field), values_of(objects, field));
  };
  for (const Json* object : objects) {
    for (const auto& [field, value] : object->items()) {
      if (form.contains(field) || whole.size() < kMostFields) add(field);
    }
  }
  for (const auto& [field, inner] : form.items()) add(field);
  return whole;
}

Json merged_plain(std::string_view rule, const Reports& values) {
  if (values.empty()) return rule.empty() ? Json() : Json(0);
  const auto is_less = [](const Json* a, const Json* b) { return *a < *b; };
  if (rule == "most") return **std::max_element(values.begin(), values.end(), is_less);
  if (rule != "sum" && rule != "least") return *values.front();
  std::uint64_t result = 0;
  for (const Json* value : values) {
    const std::uint64_t count = count_of(*value);
    if (rule == "sum") {
      result += count;
    } else if (result == 0 || (count != 0 && count < result)) {
      result = count;
    }
  }
  return result;
}

}  // namespace

const Json& form_of_status() {
  static const Json form = Json::parse(R"({
    "version": "text", "pid": "count", "uptime_seconds": "number", "algorithm": "text",
    "segment_bytes": "count", "window": "count", "instruction_set": "text", "huge_pages": "flag",
    "lcores": ["count"], "stalls": ["count"], "user_trainers": "count~ least",
    "control": {"~": "", "longest_step_ms": "number most", "*": "count sum"},
    "memory": {
      "daemon_bytes": "count sum", "pool_bytes": "count sum", "trainer_bytes": "count sum",
      "packets_reserved_bytes": "count sum", "packets_reservable_bytes": "count sum",
      "trainer_quota_bytes": "count sum", "users": [{"uid": "count", "bytes": "count sum"}],
      "*": "count sum"},
    "servers": [{
      "address": "address", "socket": "text", "trainers": "count", "key": "text~",
      "other_key": "text~", "makes_in_ms": "count~", "ends_in_ms": "count~",
      "ports": [{"level": "count", "port": "count", "rate_bps": "count?", "down": ["address"],
                 "short_only": ["address"], "wrong": "text?", "at": "text~",
                 "receive_interrupts": "flag~", "steering": "text~",
                 "*": "count"}]}],
    "jobs": [{
      "name": "text", "owner": "text~", "id": "count", "epoch": "count most", "state": "text",
      "why": "text",
      "lanes": [{"algorithm": "text", "priority": "number"}], "weight": "count",
      "reproducible": "flag", "trainers_per_server": "count", "members": ["address"],
      "window": "count least", "packets_reserved_bytes": "count sum",
      "trainers": [{"address": "address", "local": "count", "pid": "count", "uid": "count",
                    "heap_bytes": "count", "submitted": "count", "completed": "count",
                    "submitted_by_lane": ["count~"], "completed_by_lane": ["count~"],
                    "messages_waiting": "count", "messages_begun": "count",
                    "messages_done": "count"}],
      "collectives": "count", "waiting_for": ["address"], "waiting_ms": "count? most",
      "key": "text~"}],
    "hubs": [{
      "job": "text", "id": "count", "number": "count", "address": "address", "state": "text",
      "why": "text", "members": ["address"], "trainers_per_server": "count", "uid": "count",
      "keys": "count", "weights_bytes": "count", "memory_bytes": "count",
      "packets_reserved_bytes": "count"}],
    "flow_count": "count sum",
    "flows": [{
      "job": "text", "server": "address", "lane": "count", "thread": "count", "stage": "text",
      "peer": "address", "srtt_us": "number", "*": "count"}],
    "counters": {"dropped": {"*": "count sum"}, "*": "count sum"}
  })");
  return form;
}

const Json& form_of(const Json& object_form, const std::string& field) {
  static const Json plain = "plain";
  const auto named = object_form.find(field);
  if (named != object_form.end()) return *named;
  const auto others = object_form.find("*");
  return others != object_form.end() ? *others : plain;
}

Word::Word(std::string_view text) : type(text.substr(0, text.find(' '))), rule(text) {
  rule.remove_prefix(std::min(rule.size(), type.size() + 1));
  for (; type.ends_with('?') || type.ends_with('~'); type.remove_suffix(1)) {
    (type.back() == '?' ? nullable : may_be_missing) = true;
  }
}

std::uint64_t count_of(const Json& value) {
  return value.is_number_integer() ? value.get<std::uint64_t>() : 0;
}

Json merged(const Json& form, const Reports& values) {
  if (form.is_string()) return merged_plain(Word(form.get_ref<const std::string&>()).rule, values);
  Reports fitting;
  for (const Json* value : values) {
    if (value->type() == form.type()) fitting.push_back(value);
  }
  if (form.is_object()) return merged_object(form, fitting);
  Json list = Json::array();
  for (const Json* one : fitting) list.insert(list.end(), one->begin(), one->end());
  return list;
}

std::vector<Reports> grouped(const Json& list, std::initializer_list<const char*> keys) {
  std::vector<Reports> groups;
  std::unordered_map<std::string, std::size_t> places;
  for (const Json& item : list) {
    if (!item.is_object()) continue;
    Json said = Json::array();
    for (const char* key : keys) said.push_back(item.value(key, Json()));
    const std::string text = json_text(said);
    const auto [known, is_new] = places.try_emplace(text, groups.size());
    if (is_new) groups.emplace_back();
    groups[known->second].push_back(&item);
  }
  return groups;
}

}  // namespace gradcube::control::status
