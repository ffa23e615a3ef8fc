#include "control/hub/keys.h"

#include <algorithm>
#include <fmt/format.h>

#include "aggregation/optimizer.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control::hub {
namespace {

void check_key(const HubKey& key, std::string_view where) {
  if (key.name.empty() || key.name.size() > kLongestKeyName) {
    throw UsageError(fmt::format("{}: a key's name {} has {} bytes; expected 1 to {}", where,
                                 quoted(key.name), key.name.size(), kLongestKeyName));
  }
  if (!aggregation::has_optimizers(key.type)) {
    throw UsageError(fmt::format("{}: key {} is of {}; expected float32, float16 or bfloat16",
                                 where, quoted(key.name), aggregation::data_type_name(key.type)));
  }
  if (key.elements == 0 || key.elements > kMostHubBytes) {
    throw UsageError(fmt::format("{}: key {} has {} elements; expected 1 to {}", where,
                                 quoted(key.name), key.elements, kMostHubBytes));
  }
}

}  // namespace

std::vector<HubKey> ordered_keys(std::vector<HubKey> keys, std::string_view where) {
  if (keys.empty() || keys.size() > kMostKeys) {
    throw UsageError(
        fmt::format("{}: there are {} keys; expected 1 to {}", where, keys.size(), kMostKeys));
  }
  std::uint64_t bytes = 0;
  for (const HubKey& key : keys) {
    check_key(key, where);
    bytes += key.bytes();
    if (bytes > kMostHubBytes) {
      throw UsageError(fmt::format("{}: the keys up to {} have more than {} bytes together", where,
                                   quoted(key.name), kMostHubBytes));
    }
  }
  const auto by_name = [](const HubKey& a, const HubKey& b) { return a.name < b.name; };
  std::sort(keys.begin(), keys.end(), by_name);
  const auto twice = std::adjacent_find(
      keys.begin(), keys.end(), [](const HubKey& a, const HubKey& b) { return a.name == b.name; });
  if (twice != keys.end()) {
    throw UsageError(fmt::format("{}: there are two keys {}; expected a name of its own for each",
                                 where, quoted(twice->name)));
  }
  return keys;
}

}  // namespace gradcube::control::hub
