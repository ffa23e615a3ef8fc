// A fuzz target for libFuzzer.

#include <cstddef>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradcube::fuzz::read_hostile({data, size});
  return 0;
}
