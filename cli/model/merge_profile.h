// The profile of a network for `gradcube model merge`: what an all-reduce costs, and each layer's
// gradients and time in the backward pass.
#ifndef GRADCUBE_CLI_MODEL_MERGE_PROFILE_H_
#define GRADCUBE_CLI_MODEL_MERGE_PROFILE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/merge/iteration.h"

namespace gradcube::cli {

// From a file with
//
//   {"alpha": seconds, "beta": seconds per byte, "forward_seconds": seconds,
//    "layers": [{"bytes": 4000, "backward_seconds": 0.001}, ...]}
//
// alpha and beta are a and b of T(M) = a + bM, as `gradcube model fit` measures them. Times are 0
// to 10^9 s, and beta is 0 to 1 s per byte. Layers go from the first to the last; there are 1 to
// 10,000. Each has a byte at least. The forward pass takes 0 where it is not given, and other
// fields are ignored. Throws a UsageError that names the file and the field.
control::merge::Iteration read_merge_profile(const std::string& path);

// What read_merge_profile() reads as this iteration. The layers get the names, of which there are
// as many.
nlohmann::ordered_json merge_profile_json(const control::merge::Iteration& iteration,
                                          const std::vector<std::string>& names);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_MERGE_PROFILE_H_
