// How large the heap of a trainer's shared memory may be, and how $GRADCUBE_HEAP says it: the same
// for trainers, for the daemon, which makes it, and for `gradcube doctor`.
//
// Threads: any.
#ifndef GRADCUBE_TRAINER_HEAP_SIZE_H_
#define GRADCUBE_TRAINER_HEAP_SIZE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace gradcube::shared {

// Bytes: where $GRADCUBE_HEAP is empty or not set, and at most.
inline constexpr std::uint64_t kDefaultHeapBytes = std::uint64_t{16} << 30;
inline constexpr std::uint64_t kMostHeapBytes = std::uint64_t{1} << 40;

// What parse_heap_bytes() takes, in words.
inline constexpr std::string_view kHeapForm =
    "expected a number of bytes, or a number and K, M, G (powers of 1000) or Ki, Mi, Gi (powers of "
    "1024), from 1 byte to 1024Gi, for example 512Mi";

// "4096", "512M" (decimal), "512Mi" (binary), "1.5Gi"; letters of either case, a B may follow. 1
// byte to kMostHeapBytes; nothing for all else. The commands read sizes by the same rule.
std::optional<std::uint64_t> parse_heap_bytes(std::string_view text);

}  // namespace gradcube::shared

#endif  // GRADCUBE_TRAINER_HEAP_SIZE_H_
