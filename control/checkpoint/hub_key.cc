#include "control/checkpoint/hub_key.h"

#include <algorithm>

#include "aggregation/optimizer.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

[[noreturn]] void refuse_keys(std::string_view where, const std::string& what) {
  throw UsageError(std::string(where) + ": " + what);
}

void check_key(const HubKey& key, std::string_view where) {
  if (key.name.empty() || key.name.size() > kLongestKeyName) {
    refuse_keys(where, "a key's name " + quoted(key.name) + " has " +
                           std::to_string(key.name.size()) + " bytes; expected 1 to " +
                           std::to_string(kLongestKeyName));
  }
  if (key.name.find('\0') != std::string::npos) {
    refuse_keys(where, "a key's name " + quoted(key.name) + " has a NUL; expected a text of C");
  }
  if (!aggregation::has_optimizers(key.type)) {
    refuse_keys(where, "key " + quoted(key.name) + " is of " +
                           std::string(aggregation::data_type_name(key.type)) +
                           "; expected float32, float16 or bfloat16");
  }
  if (key.elements == 0 || key.elements > kMostHubBytes) {
    refuse_keys(where, "key " + quoted(key.name) + " has " + std::to_string(key.elements) +
                           " elements; expected 1 to " + std::to_string(kMostHubBytes));
  }
}

}  // namespace

std::vector<HubKey> ordered_keys(std::vector<HubKey> keys, std::string_view where) {
  if (keys.empty() || keys.size() > kMostKeys) {
    refuse_keys(where, "there are " + std::to_string(keys.size()) + " keys; expected 1 to " +
                           std::to_string(kMostKeys));
  }
  std::uint64_t bytes = 0;
  for (const HubKey& key : keys) {
    check_key(key, where);
    bytes += key.bytes();
    if (bytes > kMostHubBytes) {
      refuse_keys(where, "the keys up to " + quoted(key.name) + " have more than " +
                             std::to_string(kMostHubBytes) + " bytes together");
    }
  }
  const auto by_name = [](const HubKey& a, const HubKey& b) { return a.name < b.name; };
  std::sort(keys.begin(), keys.end(), by_name);
  const auto twice = std::adjacent_find(
      keys.begin(), keys.end(), [](const HubKey& a, const HubKey& b) { return a.name == b.name; });
  if (twice != keys.end()) {
    refuse_keys(where, "there are two keys " + quoted(twice->name) +
                           "; expected a name of its own for each");
  }
  return keys;
}

}  // namespace gradcube::control
