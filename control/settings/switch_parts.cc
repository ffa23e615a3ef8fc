#include "control/settings/switch_parts.h"

#include <algorithm>
#include <fmt/format.h>

#include "bcube_forwarding/joined_ports.h"
#include "control/base/errors.h"

namespace gradcube::control {

SwitchParts::SwitchParts(const bcube::AddressSpace& space, unsigned most_ports)
    : ports_(space.ports()), of_port_(std::size_t{space.addresses()} * space.ports()) {
  unsigned used = 0;
  for (const std::vector<bcube::ServerPort>& joined : bcube::joined_ports(space)) {
    const auto there = static_cast<unsigned>(
        std::count_if(joined.begin(), joined.end(),
                      [&](const bcube::ServerPort& end) { return !space.is_absent(end.server); }));
    if (there > most_ports) {
      throw UsageError(
          fmt::format("a switch of level {} has {} ports; the memif fabric takes switches of at "
                      "most {}, because each is in one process, which has no more",
                      space.level_of_port(joined.front().port), there, most_ports));
    }
    if (used + there > most_ports) {
      ++parts_;
      used = 0;
    }
    used += there;
    for (const auto [server, port] : joined) {
      of_port_[std::size_t{server} * ports_ + port] = parts_ - 1;
    }
  }
}

}  // namespace gradcube::control
