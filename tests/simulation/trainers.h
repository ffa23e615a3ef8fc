// The trainers of a simulated cluster, and its settings from text.
#ifndef GRADCUBE_TESTS_SIMULATION_TRAINERS_H_
#define GRADCUBE_TESTS_SIMULATION_TRAINERS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/simulated_cluster.h"

namespace gradcube::simulation {

inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

using Trainers = std::vector<std::unique_ptr<SimulatedTrainer>>;

// Flags as for `gradcube up`: {"rate", "200mbit"}.
inline SimulationSettings settings_of(
    const std::vector<std::pair<std::string, std::string>>& flags) {
  SimulationSettings settings;
  for (const auto& [name, text] : flags) {
    control::apply_setting(settings.cluster, name, text, "--" + name);
  }
  return settings;
}

inline bool all_idle(const Trainers& trainers) {
  return std::all_of(trainers.begin(), trainers.end(),
                     [](const auto& trainer) { return trainer->idle(); });
}

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_TRAINERS_H_
