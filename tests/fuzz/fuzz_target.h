// A fuzz target: one reader of hostile bytes, and inputs to begin with. Each *_target.cc defines
// the functions below; two programs are made of it:
//
//   NAME_replay   plays the seeds and random mutations of them, or files. An ordinary test.
//   NAME_fuzzer   libFuzzer's search, guided by coverage (clang++ and -Dfuzz=true only).
//
// What goes wrong ends the program: by require(), by an exception that nobody expects, by a
// sanitizer.
#ifndef GRADCUBE_TESTS_FUZZ_FUZZ_TARGET_H_
#define GRADCUBE_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace gradcube::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Reads the input as the product would, and checks what must hold whatever the input is.
void read_hostile(std::span<const std::uint8_t> input);

// Inputs that reach deep: most of them are accepted.
std::vector<Bytes> seeds();

// How many mutations the ordinary test plays: about a second's worth.
extern const unsigned kMutations;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace gradcube::fuzz

#endif  // GRADCUBE_TESTS_FUZZ_FUZZ_TARGET_H_
