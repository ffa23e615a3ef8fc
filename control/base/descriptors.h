// How many files a daemon opens: what gradcubed asks of its limit at its start, and `gradcube
// doctor` before.
#ifndef GRADCUBE_CONTROL_BASE_DESCRIPTORS_H_
#define GRADCUBE_CONTROL_BASE_DESCRIPTORS_H_

#include <cstddef>

namespace gradcube::control {

// What the daemon needs for itself, beyond one listener per server.
inline constexpr std::size_t kOwnDescriptors = 128;
// A trainer's socket, its process, its memory and its doorbell.
inline constexpr std::size_t kDescriptorsPerTrainer = 4;

// Of a daemon of so many servers.
constexpr std::size_t descriptors_for(std::size_t servers, std::size_t trainers) {
  return kOwnDescriptors + servers + trainers * kDescriptorsPerTrainer;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_DESCRIPTORS_H_
