#include "cli/text/topology_text.h"

#include <fmt/format.h>

#include "cli/text/json_fields.h"
#include "control/base/units.h"

namespace gradcube::cli {

using nlohmann::json;

std::string topology_text(const json& topology) {
  const auto kind = text_field(topology, "kind");
  const auto n = count_field(topology, "n");
  auto k = count_field(topology, "k");
  if (!k) k = count_field(topology, "h");
  if (kind == "star") {
    const auto servers = count_field(topology, "servers");
    return servers ? fmt::format("star:{}", *servers + items(topology, "absent").size()) : "";
  }
  if (kind && n && k) return fmt::format("{}:{},{}", *kind, *n, *k);
  std::string radices;
  for (const json& radix : items(topology, "radices")) {
    if (!radix.is_number_integer()) return "";
    radices += (radices.empty() ? "" : "x") + radix.dump();
  }
  return kind && !radices.empty() ? fmt::format("{}:{}", *kind, radices) : "";
}

std::string addresses_text(const json& addresses) {
  std::string text;
  for (const json& address : addresses) {
    text += (text.empty() ? "" : " ") + address_text(address);
  }
  return text;
}

std::string absent_text(const json& topology) { return addresses_text(items(topology, "absent")); }

std::string servers_count_text(const json& topology) {
  const std::size_t absent = items(topology, "absent").size();
  const auto servers = count_field(topology, "servers");
  return (servers ? control::counted(*servers, "server") : "- servers") +
         (absent == 0 ? "" : fmt::format(", {} absent", absent));
}

}  // namespace gradcube::cli
