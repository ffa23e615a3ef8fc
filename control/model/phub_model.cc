#include "control/model/phub_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "control/model/grid.h"

namespace gradcube::control::model {
namespace {

void require_positive(const char* name, double value) {
  if (!(value > 0)) {
    throw std::invalid_argument(fmt::format("{} is {}, but it is more than 0", name, value));
  }
}

}  // namespace

std::string_view name_of(PsLayout layout) {
  switch (layout) {
    case PsLayout::cc:
      return "cc";
    case PsLayout::cs:
      return "cs";
    case PsLayout::ncc:
      return "ncc";
    case PsLayout::ncs:
      break;
  }
  return "ncs";
}

std::string_view description_of(PsLayout layout) {
  switch (layout) {
    case PsLayout::cc:
      return "colocated, centralized";
    case PsLayout::cs:
      return "colocated, sharded";
    case PsLayout::ncc:
      return "on a host of its own, centralized";
    case PsLayout::ncs:
      break;
  }
  return "on hosts of their own, sharded";
}

double hiding_bits_per_second(PsLayout layout, std::uint64_t N, double M, double T) {
  const auto workers = static_cast<double>(checked_servers(N));
  require_positive("M", M);
  require_positive("T", T);
  const double once = 8 * M / T;
  switch (layout) {
    case PsLayout::cc:
      return 2 * (workers - 1) * once;
    case PsLayout::cs:
      return 4 * (workers - 1) / workers * once;
    case PsLayout::ncc:
      return 2 * workers * once;
    case PsLayout::ncs:
      break;
  }
  return 2 * once;
}

HierarchyTimes hierarchy_times(std::uint64_t N, std::uint64_t R, const HubRates& rates, double M) {
  const auto workers = static_cast<double>(checked_servers(N));
  const auto racks = static_cast<double>(checked_servers(R));
  require_positive("B_PBox", rates.hub);
  require_positive("B_Core", rates.core);
  require_positive("B_Wkr", rates.worker);
  require_positive("M", M);
  const double others = (racks - 1) / racks;
  const double local = std::max(workers / rates.hub, 1 / rates.worker);
  const double between = others / std::min(rates.hub, rates.core);
  return {.flat = workers * others / rates.core * 8 * M, .hierarchical = (local + between) * 8 * M};
}

}  // namespace gradcube::control::model
