// The reader of a hub's table, as trainers hand it over: it returns keys that can be trained, in
// their order, or throws a UsageError.

#include <algorithm>
#include <string>
#include <string_view>

#include "control/base/errors.h"
#include "dataplane/daemon/hub/hub_table.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"

namespace gradcube::fuzz {
namespace {

using aggregation::DataType;
using control::HubKey;

void check(const dataplane::HubTableContent& content) {
  require(!content.keys.empty() && content.keys.size() <= control::kMostKeys, "a hub has keys");
  std::uint64_t bytes = 0;
  for (const HubKey& key : content.keys) {
    require(!key.name.empty() && key.name.size() <= control::kLongestKeyName, "a key has a name");
    require(key.type == DataType::float32 || key.type == DataType::float16 ||
                key.type == DataType::bfloat16,
            "a key has a type that can be trained");
    require(key.elements >= 1, "a key has elements");
    bytes += key.bytes();
    require(bytes <= control::kMostHubBytes, "a hub is not too large");
  }
  require(std::adjacent_find(content.keys.begin(), content.keys.end(),
                             [](const HubKey& a, const HubKey& b) { return a.name >= b.name; }) ==
              content.keys.end(),
          "keys are in the order of their names, which differ");
}

}  // namespace

const unsigned kMutations = 200'000;

void read_hostile(std::span<const std::uint8_t> input) {
  try {
    check(dataplane::read_hub_table({reinterpret_cast<const char*>(input.data()), input.size()},
                                    "table"));
  } catch (const control::UsageError& error) {
    require(std::string_view(error.what()).starts_with("table: "), "a refusal has a message");
  }
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const std::string& table :
       {dataplane::hub_table({{"a", 1, DataType::float32}}),
        dataplane::hub_table({{"conv", 900, DataType::bfloat16}, {"bias", 3, DataType::float16}},
                             "nesterov:lr=0.1,momentum=0.9", 4096, {7, 8}),
        dataplane::hub_table({{"a", 1, DataType::float32}}, "sgd", 4096, {}, true),
        dataplane::hub_table({{"c", 5, DataType::float32},
                              {"b", std::uint64_t{1} << 40, DataType::float32},
                              {"a", 7, DataType::bfloat16}},
                             "adamw")}) {
    inputs.emplace_back(table.begin(), table.end());
  }
  return inputs;
}

}  // namespace gradcube::fuzz
