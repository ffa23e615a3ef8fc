// Which layers' gradients travel as one message: four policies.
//
//   wfbp       each layer alone, as soon as it is ready (MG-WFBP, section II-C)
//   synceasgd  all layers in one message, after the backward pass (section I)
//   mgwfbp     MG-WFBP's Algorithm 1
//   optimal    the messages with which the iteration ends first
//
// Theorem 1 says that Algorithm 1 finds the least iteration time. It does not: its condition,
// tau_b^(l-2) - tau_c^(l) < a, compares only when the gradients of layer l-1 have travelled, with
// and without layer l among them, and counts on l-1 to travel next. If l-1 is then merged into l-2,
// layer l need not have waited. docs/mg-wfbp.md has the smallest example, with three layers.
//
// `optimal` is exact. Let end(l) be the earliest time at which the layers l..L have travelled. The
// message with layer l has some layers l..m, and an earlier end of those above m never hurts, so
//
//   end(l) = min over m of max(end(m+1), ready(l)) + a + b * bytes(l..m)
//
// Of messages with equal ends it takes the fewest.
//
// Where the text leaves a choice: Algorithm 1 reads tau_b[0], which it never sets; it is the end of
// the backward pass, when layer 1 is ready. The condition of the proof of Theorem 1 has b where the
// theorem has a; a is meant, as C.2 before it shows.
//
// Steps: O(L) for the first two, O(L^2) for the others.
#ifndef GRADCUBE_CONTROL_MERGE_POLICIES_H_
#define GRADCUBE_CONTROL_MERGE_POLICIES_H_

#include <array>
#include <string_view>
#include <vector>

#include "control/merge/iteration.h"

namespace gradcube::control::merge {

enum class Policy { wfbp, synceasgd, mgwfbp, optimal };

inline constexpr std::array kPolicies = {Policy::wfbp, Policy::synceasgd, Policy::mgwfbp,
                                         Policy::optimal};

std::string_view name_of(Policy policy);

// In the order of sending, the message with the last layer first. Each layer is in one message.
std::vector<Message> messages_of(Policy policy, const Iteration& iteration);

}  // namespace gradcube::control::merge

#endif  // GRADCUBE_CONTROL_MERGE_POLICIES_H_
