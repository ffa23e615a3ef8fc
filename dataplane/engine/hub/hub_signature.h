// What a segment header says of a hub's segment, in the fields that say of a collective's what it
// is a part of (docs/protocol.md, "Chunks of a hub"):
//
//   collective           the chunk's number
//   count                position (bits 0-15), digest bits 0-15 (bits 16-31)
//   root                 round (bits 0-7), digest bits 16-23 (bits 8-15)
//   type_and_operation   digest bits 24-31
//   kind                 the kind of what is pushed, and the plane
#ifndef GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_SIGNATURE_H_
#define GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_SIGNATURE_H_

#include <array>
#include <cstdint>
#include <optional>

#include "control/checkpoint/hub_planes.h"
#include "dataplane/engine/flows/contribution.h"
#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

// By PushKind, beyond those of collectives and messages; of what has planes the first one's.
inline constexpr std::array<std::uint8_t, shared::kPushKinds> kHubKinds = {19, 20, 21, 32,
                                                                           48, 25, 26};
static_assert(kHubKinds[3] + control::kMostHubPlanes <= kHubKinds[4]);
static_assert(HubShape::kMostPositions == 1U << 16);

inline CollectiveSignature signature_of(const HubLabel& label) {
  CollectiveSignature signature;
  signature.type_and_operation = static_cast<std::uint8_t>(label.digest >> 24);
  signature.count = label.digest << 16 | label.position;
  signature.root = static_cast<std::uint16_t>(label.round | (label.digest >> 16 & 0xffU) << 8);
  signature.kind =
      static_cast<std::uint8_t>(kHubKinds[static_cast<std::size_t>(label.kind)] + label.plane);
  signature.collective = label.chunk;
  return signature;
}

// Of what came in a frame: every field is hostile. Nothing, if it has no kind of a hub's.
inline std::optional<HubLabel> label_of(const CollectiveSignature& signature) {
  for (unsigned i = 0; i < shared::kPushKinds; ++i) {
    const auto kind = static_cast<PushKind>(i);
    const unsigned plane = unsigned{signature.kind} - kHubKinds[i];
    if (plane >= (shared::is_of_plane(kind) ? control::kMostHubPlanes : 1U)) continue;
    HubLabel label;
    label.chunk = signature.collective;
    label.position = signature.count & 0xffffU;
    label.round = static_cast<std::uint8_t>(signature.root);
    label.kind = kind;
    label.plane = static_cast<std::uint8_t>(plane);
    label.digest = signature.count >> 16 | std::uint32_t{signature.root} >> 8 << 16 |
                   std::uint32_t{signature.type_and_operation} << 24;
    return label;
  }
  return std::nullopt;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_HUB_HUB_SIGNATURE_H_
