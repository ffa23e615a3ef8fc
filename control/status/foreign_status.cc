#include "control/status/foreign_status.h"

#include <array>
#include <cmath>
#include <string>

#include "control/base/printable.h"
#include "control/plan/base/topology.h"
#include "control/status/form.h"

namespace gradcube::control::status {

namespace {

constexpr int kDeepest = 8;
constexpr std::size_t kLongestText = 4096;
// Of one object: looking for a key takes time in their number.
constexpr std::size_t kMostKeys = 128;

bool may_be_missing(const Json& form) {
  if (form.is_object()) return form.contains("~");
  if (form.is_array()) return may_be_missing(form[0]);
  return Word(form.get_ref<const std::string&>()).may_be_missing;
}

class Checker {
 public:
  explicit Checker(const bcube::AddressSpace& space) : space_(space) {}

  // What is left of the value, or discarded if it is not of the form.
  Json check(const Json& value, const Json& form) const {
    if (form.is_object()) return value.is_object() ? check_object(value, form) : kBad;
    if (form.is_array()) return value.is_array() ? check_list(value, form[0]) : kBad;
    const Word word(form.get_ref<const std::string&>());
    return word.nullable && value.is_null() ? value : check_type(value, word.type);
  }

 private:
  Json check_object(const Json& value, const Json& form) const {
    Json known = Json::object();
    for (const auto& [key, inner] : form.items()) {
      if (key == "*" || key == "~") continue;
      const auto told = value.find(key);
      if (told == value.end() && may_be_missing(inner)) continue;
      if (told == value.end()) return kBad;
      known[key] = check(*told, inner);
      if (known[key].is_discarded()) return kBad;
    }
    for (const auto& [key, inner] : value.items()) {
      if (form.contains(key) || key.size() > kShownBytes) continue;
      Json one = check(inner, form_of(form, key));
      if (!one.is_discarded()) {
        known[printable(key)] = std::move(one);
      } else if (form.contains("*")) {
        return kBad;
      }
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

  Json check_type(const Json& value, std::string_view type) const {
    if (type == "count") return value.is_number_unsigned() ? value : kBad;
    if (type == "address") return is_address(value) ? value : kBad;
    const bool plain = type == "plain";
    if (value.is_boolean()) return plain || type == "flag" ? value : kBad;
    if (value.is_number()) {
      const bool number = (plain || type == "number") && std::isfinite(value.get<double>());
      return number ? value : kBad;
    }
    if (!value.is_string() || (!plain && type != "text")) return kBad;
    return printable(value.get_ref<const std::string&>(), kLongestText);
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
      status["servers"][0]["address"] != address_json(space, server) ||
      status["servers"][0]["ports"].size() != space.ports(server) ||
      status["lcores"].size() != status["stalls"].size()) {
    return std::nullopt;
  }
  return status;
}

}  // namespace gradcube::control::status
