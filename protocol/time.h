// Time in protocol/: a signed count of nanoseconds on the caller's clock.
//
// Nothing in this folder reads a clock. The caller passes the current time to every call that
// depends on it, so a whole cluster can run on a virtual clock and be replayed. Only differences
// have a meaning; the caller chooses the origin.
#ifndef GRADCUBE_PROTOCOL_TIME_H_
#define GRADCUBE_PROTOCOL_TIME_H_

#include <cstdint>
#include <limits>

namespace gradcube::protocol {

using Nanoseconds = std::int64_t;

inline constexpr double kNanosecondsPerSecond = 1e9;

// A deadline that never comes.
inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

inline constexpr Nanoseconds kMicrosecond = 1'000;
inline constexpr Nanoseconds kMillisecond = 1'000'000;

// The longest time that a receiver delays an acknowledgement so that a segment in the other
// direction can carry it, unless the fabric's settings say otherwise. Both halves of a flow use it:
// the sender adds it to its timers.
inline constexpr Nanoseconds kAcknowledgeDelay = 25 * kMicrosecond;

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_TIME_H_
