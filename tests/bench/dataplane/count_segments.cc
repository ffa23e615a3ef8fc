// What scripts/bench_instructions.py counts the instructions of: all-reduces of two servers on one
// core, 128 segments each, under a clock that moves by a microsecond each iteration. So the program
// does the same in each run, and two runs differ by their all-reduces alone.
//
//   count_segments none|crc|mac SEGMENT ALLREDUCES
//
// SEGMENT: the length of a segment's payload in bytes. Prints the number of segments as JSON.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "dataplane/host/clock.h"
#include "dataplane/host/eal.h"
#include "tests/bench/dataplane/two_servers.h"

namespace gradcube {
namespace {

constexpr std::int64_t kIteration = 1'000;
constexpr std::uint64_t kSegmentsOfABuffer = 64;

int run(std::string_view checksum, std::uint32_t segment, unsigned allreduces) {
  dataplane::EalOptions options;
  options.cores = {dataplane::usable_cores().front()};
  const dataplane::Eal eal(options);
  dataplane::VirtualClock clock(kIteration);
  TwoServers pair(clock, segment, kSegmentsOfABuffer * segment, checksum == "mac");
  if (checksum != "mac") pair.set_checksums(checksum == "crc");
  for (unsigned i = 0; i < allreduces; ++i) {
    pair.submit();
    while (pair.is_busy()) {
      pair.iterate();
      clock.advance(kIteration);
    }
  }
  std::printf("{\"segments\": %ju}\n",
              static_cast<std::uintmax_t>(pair.payload() / segment * allreduces));
  return 0;
}

}  // namespace
}  // namespace gradcube

int main(int argc, char** argv) {
  try {
    if (argc == 4) {
      return gradcube::run(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])),
                           static_cast<unsigned>(std::atoi(argv[3])));
    }
    std::fprintf(stderr, "usage: count_segments none|crc|mac SEGMENT ALLREDUCES\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "count_segments: %s\n", error.what());
    return 1;
  }
}
