// A hub's table as a trainer writes it, and as one that lies does.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_HUB_TABLE_BYTES_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_HUB_TABLE_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/checkpoint/hub_key.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string table_begin(std::uint32_t keys, std::string_view optimizer = "sgd",
                               std::uint64_t chunk_bytes = 32768,
                               const std::vector<std::uint32_t>& aggregators = {},
                               bool accumulates = false) {
  std::string table =
      bytes_of(shared::HubTable{chunk_bytes, keys, static_cast<std::uint32_t>(optimizer.size()),
                                static_cast<std::uint32_t>(aggregators.size()),
                                shared::kSynchronous, accumulates ? 1U : 0U, 0});
  table += optimizer;
  for (const std::uint32_t aggregator : aggregators) table += bytes_of(aggregator);
  return table;
}

inline std::string table_key(std::string_view name, std::uint64_t elements = 1,
                             std::uint32_t dtype = 0) {
  return bytes_of(shared::HubTableKey{elements, static_cast<std::uint32_t>(name.size()), dtype}) +
         std::string(name);
}

inline std::string hub_table(const std::vector<control::HubKey>& keys,
                             std::string_view optimizer = "sgd", std::uint64_t chunk_bytes = 32768,
                             const std::vector<std::uint32_t>& aggregators = {},
                             bool accumulates = false) {
  std::string table = table_begin(static_cast<std::uint32_t>(keys.size()), optimizer, chunk_bytes,
                                  aggregators, accumulates);
  for (const control::HubKey& key : keys) {
    table += table_key(key.name, key.elements, static_cast<std::uint32_t>(key.type));
  }
  return table;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DAEMON_HUB_TABLE_BYTES_H_
