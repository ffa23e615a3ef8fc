// What the running cluster finds out about the paths between two servers: its daemon probes them.
#ifndef GRADCUBE_CLI_PLAN_MEASURED_PATHS_H_
#define GRADCUBE_CLI_PLAN_MEASURED_PATHS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/route.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

struct MeasuredPath {
  bcube::Route route;
  std::string state;                                  // answers, silent or down
  std::optional<std::uint64_t> round_trip_ns;         // where it answers
  std::optional<std::uint64_t> bits_per_second_left;  // where it answers, and links have rates
};

// By ascending number of hops, then by the port that they leave through. Asks the daemon, a second
// long at most. Throws what it refuses, and a SetupError where none runs, where no answer comes in
// time, or on an answer that no daemon could have written.
std::vector<MeasuredPath> measure_paths(const control::RunDirectory& directory,
                                        const bcube::AddressSpace& space, bcube::ServerId from,
                                        bcube::ServerId to);

// The same from the daemon's answer.
std::vector<MeasuredPath> read_measured_paths(const nlohmann::json& answer,
                                              const bcube::AddressSpace& space,
                                              bcube::ServerId from, bcube::ServerId to);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_MEASURED_PATHS_H_
