// Which of its parallel paths a flow should take, by what their links have left (BCube source
// routing: BCube, section 4.1).
//
// A flow moves only from a path that is nearly full, to one that would give it clearly more than it
// has: kGain times what it sends now and what its path has left beside it, and more where the path
// is longer, because a longer one takes up more links. So two flows do not swap paths for ever, and
// where all links carry the same nobody moves. When to ask, and that not all flows move at once, is
// the owner's business (path_prober.h).
//
// Pure functions; nothing allocates.
#ifndef GRADCUBE_BCUBE_FORWARDING_PATH_CHOICE_H_
#define GRADCUBE_BCUBE_FORWARDING_PATH_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bcube_forwarding/route.h"

namespace gradcube::bcube {

// What is known of a path.
struct PathNews {
  enum class State : std::uint8_t {
    waiting,  // for the answer to a probe
    answers,
    silent,  // no answer came in time
  };

  Route route;
  State state = State::waiting;
  std::int64_t round_trip = 0;             // of the probe and its answer, in nanoseconds
  std::uint64_t bits_per_second_left = 0;  // on the link that has least; UINT64_MAX: no link has a
                                           // rate
};

inline constexpr double kGain = 1.5;
// A path is nearly full if less than one part in so many of a link's rate is left.
inline constexpr std::uint64_t kNearlyFull = 4;

// The place of the path that is better for a flow than its own, which is one of them too; none if
// it should stay. sent: what the flow itself sends, in bits per second. rate: of the link that it
// leaves through.
std::optional<std::size_t> better_path(std::span<const PathNews> paths, const Route& own,
                                       std::uint64_t sent, std::uint64_t rate);

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_PATH_CHOICE_H_
