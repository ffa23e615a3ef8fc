// The timeline of an iteration in Chrome's trace format, which chrome://tracing and Perfetto show:
// the picture of MG-WFBP's Fig. 1 to 4 for a profile.
#ifndef GRADCUBE_CLI_MODEL_MERGE_TIMELINE_H_
#define GRADCUBE_CLI_MODEL_MERGE_TIMELINE_H_

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "control/merge/policies.h"

namespace gradcube::cli {

// A policy and its messages, in the order of sending.
using PolicyMessages = std::pair<control::merge::Policy, std::vector<control::merge::Message>>;

// {"traceEvents":[..],"displayTimeUnit":"ms"}. A process for each policy, with a track for what is
// computed, the forward pass and each layer's part of the backward pass, and one for its messages.
// Times in microseconds from the begin of the iteration; layers count from 1.
nlohmann::ordered_json merge_timeline(const control::merge::Iteration& iteration,
                                      const std::vector<PolicyMessages>& policies);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_MERGE_TIMELINE_H_
