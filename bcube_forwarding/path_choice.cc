#include "bcube_forwarding/path_choice.h"

#include <algorithm>

namespace gradcube::bcube {

std::optional<std::size_t> better_path(std::span<const PathNews> paths, const Route& own,
                                       std::uint64_t sent, std::uint64_t rate) {
  const auto current = std::find_if(paths.begin(), paths.end(),
                                    [&](const PathNews& path) { return path.route == own; });
  if (current == paths.end() || current->state != PathNews::State::answers ||
      current->bits_per_second_left >= rate / kNearlyFull) {
    return std::nullopt;
  }
  // Per hop: a path that is twice as long takes twice as much of the network.
  const auto worth = [](double bits_per_second, const Route& route) {
    return bits_per_second / route.size();
  };
  double best = kGain * worth(static_cast<double>(sent + current->bits_per_second_left), own);
  std::optional<std::size_t> better;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const PathNews& path = paths[i];
    if (path.state != PathNews::State::answers || path.route == own) continue;
    const double offered =
        worth(static_cast<double>(std::min(path.bits_per_second_left, rate)), path.route);
    if (offered <= best) continue;
    best = offered;
    better = i;
  }
  return better;
}

}  // namespace gradcube::bcube
