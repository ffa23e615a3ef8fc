// The seed of a randomised test: GRADCUBE_TEST_SEED if it is set, else the test's own. Give it to
// SCOPED_TRACE.
#ifndef GRADCUBE_TESTS_UNIT_PROTOCOL_SEED_H_
#define GRADCUBE_TESTS_UNIT_PROTOCOL_SEED_H_

#include <cstdint>
#include <cstdlib>
#include <string>

namespace gradcube::protocol {

inline std::uint64_t test_seed(std::uint64_t otherwise) {
  const char* text = std::getenv("GRADCUBE_TEST_SEED");
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

inline std::string seed_trace(std::uint64_t seed) {
  return "GRADCUBE_TEST_SEED=" + std::to_string(seed);
}

}  // namespace gradcube::protocol

#endif  // GRADCUBE_TESTS_UNIT_PROTOCOL_SEED_H_
