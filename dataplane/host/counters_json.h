// Counters as JSON, by their names and groups.
#ifndef GRADCUBE_DATAPLANE_HOST_COUNTERS_JSON_H_
#define GRADCUBE_DATAPLANE_HOST_COUNTERS_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "dataplane/host/counter_table.h"

namespace gradcube::dataplane {

// Table: where for_each() lists the counters.
template <typename Table, typename Counters>
nlohmann::ordered_json counters_json(const Counters& counters) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  Table::for_each(
      [&](const CounterEntry& entry, std::uint64_t value) {
        nlohmann::ordered_json& group = entry.group.empty() ? json : json[std::string(entry.group)];
        group[std::string(entry.name)] = value;
      },
      counters);
  return json;
}

template <typename Counters>
nlohmann::ordered_json counters_json(const Counters& counters) {
  return counters_json<Counters, Counters>(counters);
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_COUNTERS_JSON_H_
