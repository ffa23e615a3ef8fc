// A key of a parameter hub: a tensor of weights with a name, and its gradients (PHub, section 2: a
// layer).
//
// Trainers may name the keys of a model in any order. The hub and its files have them by name, so
// that all ranks number them alike.
//
// Any thread may call what is here.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_HUB_KEY_H_
#define GRADCUBE_CONTROL_CHECKPOINT_HUB_KEY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aggregation/element.h"

namespace gradcube::control {

inline constexpr std::size_t kMostKeys = 65536;
inline constexpr std::size_t kLongestKeyName = 255;
inline constexpr std::uint64_t kMostHubBytes = std::uint64_t{1} << 46;

struct HubKey {
  std::string name;
  std::uint64_t elements = 0;
  aggregation::DataType type = aggregation::DataType::float32;  // of the gradients

  std::uint64_t bytes() const { return elements * aggregation::element_bytes(type); }
  bool operator==(const HubKey&) const = default;
};

// The keys by the bytes of their names. Throws a UsageError that begins with `where` unless there
// are 1 to kMostKeys of them, with names that differ and have 1 to kLongestKeyName bytes and no
// NUL, each with an element or more of a type that has optimizers, and at most kMostHubBytes
// together.
std::vector<HubKey> ordered_keys(std::vector<HubKey> keys, std::string_view where);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_HUB_KEY_H_
