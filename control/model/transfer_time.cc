#include "control/model/transfer_time.h"

#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control::model {

double transfer_seconds(double bytes, double bits_per_second) {
  if (!(std::isfinite(bytes) && bytes >= 0 && std::isfinite(bits_per_second) &&
        bits_per_second > 0)) {
    throw std::invalid_argument(
        fmt::format("{} bytes at {} bit/s: expected finite numbers, at least 0 bytes and a rate "
                    "above 0",
                    bytes, bits_per_second));
  }
  return 8 * bytes / bits_per_second;
}

}  // namespace gradcube::control::model
