#include "dataplane/fabric/pacer.h"

#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

Pacer pacer_of_queue(std::uint64_t bits_per_second, std::size_t queues,
                     std::uint32_t full_frame_wire_bytes, std::string_view port) {
  const std::uint64_t rate = bits_per_second / queues;
  if (bits_per_second != 0 && rate < LinkClock::kMinRate) {
    throw control::UsageError(fmt::format(
        "{} bit/s is too little for {} queues of {}: at least {} bit/s for each, or 0 for no limit",
        bits_per_second, queues, port, LinkClock::kMinRate));
  }
  return {rate, full_frame_wire_bytes};
}

}  // namespace gradcube::dataplane
