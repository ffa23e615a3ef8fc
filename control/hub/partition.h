// Divides pieces of work among bins by LPT, the longest first (Graham, "Bounds on multiprocessing
// timing anomalies", 1969): each piece, by falling size, goes to the bin that it leaves the least
// full. The fullest of m bins then has at most 4/3 - 1/(3m) of what the best division's has: PHub's
// "4/3 approximation" (section 3.2.4).
//
// Ties go to the piece and the bin of the lowest number, so that all ranks divide alike.
#ifndef GRADCUBE_CONTROL_HUB_PARTITION_H_
#define GRADCUBE_CONTROL_HUB_PARTITION_H_

#include <cstdint>
#include <span>
#include <vector>

namespace gradcube::control::hub {

// The bin of each piece. A bin of twice the weight takes twice the load, and its fullness is by its
// weight; with weights that differ the bound is 2. At least one bin, and no weight is 0. Loads may
// not exceed 2^46, or weights 65535.
std::vector<unsigned> divide_longest_first(std::span<const std::uint64_t> sizes,
                                           std::span<const unsigned> weights);

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_PARTITION_H_
