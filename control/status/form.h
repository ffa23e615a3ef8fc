// The form of a daemon's status: what others rely on in it, and how those of several daemons become
// one. What checks a foreign status (foreign_status.h) and what puts statuses together
// (merged_status.h) follow this one list.
//
// A word is the type of a value: "count" is not negative and has no fraction, a "number" is finite,
// an "address" is a server's of the cluster. '?' after it: or null; '~': or missing. Then comes the
// rule by which values of several daemons become one: they add up ("sum"), or it is the greatest
// ("most"), the least but 0, which is unknown ("least"), or, without a rule, that of the first. A
// list has one element here, which all of its elements are like; several lists are joined. A form
// with "~", and a list of what may be missing, may be missing.
//
// "*" is the word of all fields that are not named. Without it they are numbers, flags and texts,
// and several become that of the first. So a new field needs a line here only where another rule
// holds for it, where more depends on it, or where it is not a plain value.
//
// Pure functions.
#ifndef GRADCUBE_CONTROL_STATUS_FORM_H_
#define GRADCUBE_CONTROL_STATUS_FORM_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::control::status {

using Json = nlohmann::ordered_json;

const Json& form_of_status();

// Of a field of an object of this form.
const Json& form_of(const Json& object_form, const std::string& field);

// The word of a plain value, taken apart.
struct Word {
  explicit Word(std::string_view text);

  std::string_view type;
  std::string_view rule;
  bool nullable = false;
  bool may_be_missing = false;
};

using Reports = std::vector<const Json*>;

// What values of this form become. Of no value: what is empty, 0 by a rule, else null.
Json merged(const Json& form, const Reports& values);

// The objects of a list that say the same under these keys: groups in the order of the list.
std::vector<Reports> grouped(const Json& list, std::initializer_list<const char*> keys);

// 0 if it is none.
std::uint64_t count_of(const Json& value);

}  // namespace gradcube::control::status

#endif  // GRADCUBE_CONTROL_STATUS_FORM_H_
