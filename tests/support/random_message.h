// Messages between daemons with random content, each within the rules of their byte form.
#ifndef GRADCUBE_TESTS_SUPPORT_RANDOM_MESSAGE_H_
#define GRADCUBE_TESTS_SUPPORT_RANDOM_MESSAGE_H_

#include <cstdint>
#include <random>

#include "bcube_forwarding/address.h"
#include "control/jobs/node_message.h"

namespace gradcube::control {

// How many kinds there are: each body of a message between nodes, and in the place of a job message
// each of its bodies.
inline constexpr std::size_t kMessageKinds =
    std::variant_size_v<decltype(NodeMessage::body)> - 1 + std::variant_size_v<JobBody>;

// The kind 0 is a greeting; then come job messages with the bodies in their order, and then the
// others in theirs.
NodeMessage random_message(std::size_t kind, std::mt19937_64& random,
                           const bcube::AddressSpace& space);

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_SUPPORT_RANDOM_MESSAGE_H_
