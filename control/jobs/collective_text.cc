#include "control/jobs/collective_text.h"

#include <fmt/format.h>

namespace gradcube::control {

std::string collective_text(const std::string& job, std::size_t lanes, CollectiveName collective) {
  if (collective.number == kMessageNumber) return fmt::format("a message of job \"{}\"", job);
  const std::string lane = lanes > 1 ? fmt::format(" of lane {}", collective.lane) : "";
  return fmt::format("collective {}{} of job \"{}\"", collective.number, lane, job);
}

}  // namespace gradcube::control
