#include "cli/status/hub_text.h"

#include <cstdint>
#include <string_view>

#include "cli/text/json_fields.h"
#include "cli/text/text_table.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestCause = 500;

// "-" also for 0: nothing is known before the hub is made.
std::string known_bytes(const json& hub, std::string_view path) {
  const double bytes = number_field(hub, path).value_or(0);
  return bytes > 0 ? human_bytes(bytes) : "-";
}

std::string known_count(const json& hub, std::string_view path) {
  const std::uint64_t number = count_field(hub, path).value_or(0);
  return number > 0 ? grouped(number) : "-";
}

}  // namespace

std::string hubs_text(const json& status) {
  TextTable table({{"job", Align::left},
                   {"id"},
                   {"server"},
                   {"state", Align::left},
                   {"called by"},
                   {"trainers"},
                   {"keys"},
                   {"weights"},
                   {"memory"},
                   {"packets"},
                   {"user"},
                   {"", Align::left}});
  for (const json& hub : items(status, "hubs")) {
    const json& members = items(hub, "members");
    const std::uint64_t trainers =
        members.size() * count_field(hub, "trainers_per_server").value_or(1);
    table.add_row({cell_text(hub, "job"), id_text(hub, "id"), address_text(field(hub, "address")),
                   cell_text(hub, "state"), members.empty() ? "-" : address_text(members[0]),
                   grouped(trainers), known_count(hub, "keys"), known_bytes(hub, "weights_bytes"),
                   known_bytes(hub, "memory_bytes"), known_bytes(hub, "packets_reserved_bytes"),
                   id_text(hub, "uid"),
                   control::printable(text_field(hub, "why").value_or(""), kLongestCause)});
  }
  return table.text_below("hubs that are aggregated for jobs of other servers");
}

}  // namespace gradcube::cli
