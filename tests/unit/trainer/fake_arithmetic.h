// What the fake daemon computes (fake_daemon.h).
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FAKE_ARITHMETIC_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FAKE_ARITHMETIC_H_

#include <cstddef>

#include "trainer/shared_layout.h"

namespace gradcube::trainer {

// The bytes of the submission's buffer.
std::size_t buffer_bytes(const shared::Submission& submission, std::size_t size);

// Leaves the result of `submission` in `buffer`, as the trainer of `rank` of `size` sees it.
void compute_result(const shared::Submission& submission, std::byte* buffer, std::size_t rank,
                    std::size_t size);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FAKE_ARITHMETIC_H_
