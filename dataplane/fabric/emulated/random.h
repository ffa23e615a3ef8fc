// The seeded generator of all random events in an emulated fabric (SplitMix64: a Weyl sequence
// through a mixing function).
//
// The same seed gives the same numbers on every machine, compiler and core count. The distributions
// of the standard library do not promise this. Not for secrets. One owner, one thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_RANDOM_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_RANDOM_H_

#include <cstdint>

namespace gradcube::dataplane {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
  }

  // Uniform in [0, bound); bound must not be 0. The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_RANDOM_H_
