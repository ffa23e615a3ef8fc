// How the places that a daemon has of a kind are divided among the users whom it serves: jobs,
// trainers, jobs that wait for others, hubs of an aggregator and the bytes of their tables.
//
// The rule: a user may take more as long as he then has no more than he leaves free. So one alone
// gets half, who comes next half of the rest, and so on; of n who take in turn each gets an (n +
// 1)th, and so much stays free. Where a daemon serves its own user alone, nothing is divided.
//
// A plain value; any thread.
#ifndef GRADCUBE_CONTROL_BASE_FAIR_SHARE_H_
#define GRADCUBE_CONTROL_BASE_FAIR_SHARE_H_

#include <cstdint>

namespace gradcube::control {

struct FairShare {
  bool is_divided = false;

  // Whether a user who has `own` of the `taken` may take `more` of `all`.
  constexpr bool allows(std::uint64_t all, std::uint64_t taken, std::uint64_t own,
                        std::uint64_t more = 1) const {
    if (taken > all || more > all - taken) return false;
    return !is_divided || own + more <= all - taken - more;
  }
  // What one user has at most.
  constexpr std::uint64_t most(std::uint64_t all) const { return is_divided ? all / 2 : all; }
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_FAIR_SHARE_H_
