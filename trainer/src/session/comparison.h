// What the trainers of a job exchange to find out whether their memory has the same bytes.
//
// Each gives the daemon the digest of its bytes, XXH3 of 64 bits, and their number; an all-gather
// brings all of them to all, and each trainer judges. All judge the same, because an all-gather has
// the same bits everywhere. Two contents have one digest by chance once in 2^64 times; this is no
// shield against somebody who wants them to.
//
// Any thread; no state.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_COMPARISON_H_
#define GRADCUBE_TRAINER_SRC_SESSION_COMPARISON_H_

#include <cstddef>
#include <span>
#include <string>

namespace gradcube::trainer {

// Of one trainer.
inline constexpr std::size_t kDigestBytes = 16;

void write_digest(std::span<const std::byte> memory, std::byte* to);

// Of the digests of all ranks, one after the other. Empty: all are the same. Else which ranks
// differ from more than half of all; or, where there is no such majority, who agrees with whom.
std::string find_difference(std::span<const std::byte> digests);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_COMPARISON_H_
