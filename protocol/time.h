// Time as protocol/ knows it: a signed count of nanoseconds on the caller's clock.
//
// Nothing in this folder reads a clock. Every call that depends on time is handed the present
// moment, so that a whole cluster can run on a virtual clock and be replayed. Only differences have
// a meaning; the origin is the caller's.
#ifndef GRADCUBE_PROTOCOL_TIME_H_
#define GRADCUBE_PROTOCOL_TIME_H_

#include <cstdint>
#include <limits>

namespace gradcube::protocol {

using Nanoseconds = std::int64_t;

// A deadline that never comes.
inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

inline constexpr Nanoseconds kMicrosecond = 1'000;
inline constexpr Nanoseconds kMillisecond = 1'000'000;

// The longest that a receiver keeps an acknowledgement back in the hope that a segment in the other
// direction carries it, unless the fabric's settings say otherwise. It stands here because both
// halves of a flow depend on it: the sender's timers add it to what they wait.
inline constexpr Nanoseconds kAcknowledgeDelay = 25 * kMicrosecond;

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_TIME_H_
