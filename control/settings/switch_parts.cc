#include "control/settings/switch_parts.h"

#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::control {

SwitchParts::SwitchParts(const bcube::AddressSpace& space, unsigned most_ports)
    : ports_(space.ports()), of_port_(std::size_t{space.servers()} * space.ports()) {
  unsigned used = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned radix = space.radix(level);
    if (radix > most_ports) {
      throw UsageError(
          fmt::format("a switch of level {} has {} ports; the memif fabric takes switches of at "
                      "most {}, because each is in one process, which has no more",
                      level, radix, most_ports));
    }
    for (bcube::ServerId first = 0; first < space.servers(); ++first) {
      if (space.digit(first, level) != 0) continue;
      if (used + radix > most_ports) {
        ++parts_;
        used = 0;
      }
      used += radix;
      for (unsigned digit = 0; digit < radix; ++digit) {
        const bcube::ServerId server = space.with_digit(first, level, digit);
        of_port_[std::size_t{server} * ports_ + level] = parts_ - 1;
      }
    }
  }
}

}  // namespace gradcube::control
