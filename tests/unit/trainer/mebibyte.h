// The unit of sizes of heaps.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_MEBIBYTE_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_MEBIBYTE_H_

#include <cstddef>

namespace gradcube::trainer {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_MEBIBYTE_H_
