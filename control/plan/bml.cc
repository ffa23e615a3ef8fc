#include "control/plan/bml.h"

#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::control {

Plan make_bml_plan(const Topology& topology) {
  for (const Dimension& dimension : topology.dimensions()) {
    if (dimension.link != Link::switched) {
      throw UsageError(fmt::format(
          "algorithm bml on topology {}: every server sends to every other under one switch, and "
          "here only adjacent servers are joined; expected bcube:n,k or star:N, for example "
          "bcube:3,2",
          topology.spec()));
    }
  }
  const unsigned k = topology.levels();
  std::vector<std::vector<unsigned>> levels(k);
  for (unsigned t = 0; t < k; ++t) {
    for (unsigned w = 0; w < k; ++w) levels[t].push_back((t + w) % k);
  }
  return Plan("bml", topology, levels);
}

}  // namespace gradcube::control
