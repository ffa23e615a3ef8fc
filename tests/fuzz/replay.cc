// Plays a fuzz target without libFuzzer:
//   NAME_replay                    the seeds, then random mutations of them
//   NAME_replay FILE...            these inputs, for instance one that libFuzzer has found
//   NAME_replay --write-seeds DIR  writes the seeds, for libFuzzer to begin with
//
// The random seed is printed first; GRADCUBE_TEST_SEED plays one again. The input that ends the
// program is the last one: GRADCUBE_FUZZ_INPUT=FILE keeps each input there before it is played.

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace gradcube::fuzz {
namespace {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Bytes mutated(const std::vector<Bytes>& inputs) {
    Bytes bytes = inputs[below(inputs.size())];
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
      change(bytes, inputs[below(inputs.size())]);
    }
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  std::uint8_t byte() {
    static constexpr std::uint8_t kInteresting[] = {0, 1, 0x7f, 0x80, 0xff, '"', '[', '{', '\n'};
    return below(2) == 0 ? kInteresting[below(std::size(kInteresting))]
                         : static_cast<std::uint8_t>(below(256));
  }

  void change(Bytes& bytes, const Bytes& other) {
    const std::size_t at = below(bytes.size() + 1);
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = below(std::min<std::size_t>(bytes.size() - at, 16) + 1);
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = byte();
        break;
      case 2:
        bytes.insert(place, byte());
        break;
      case 3:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(length));
        break;
      case 4: {
        const Bytes copy(place, place + static_cast<std::ptrdiff_t>(length));
        bytes.insert(place, copy.begin(), copy.end());
        break;
      }
      default:  // goes on as another input does
        bytes.resize(at);
        if (at < other.size()) {
          bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(at), other.end());
        }
    }
  }

  std::mt19937_64 random_;
};

void write(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  require(file.good(), "the file can be written");
}

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "the file can be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void play(const Bytes& input) {
  if (const char* path = std::getenv("GRADCUBE_FUZZ_INPUT")) write(path, input);
  // A block of its own size, so that a sanitizer sees the first byte read beyond it.
  const Bytes exact(input.begin(), input.end());
  read_hostile(exact);
}

void play_mutations() {
  const char* given = std::getenv("GRADCUBE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 20240607;
  std::printf("GRADCUBE_TEST_SEED=%ju\n", static_cast<std::uintmax_t>(seed));
  std::fflush(stdout);
  const std::vector<Bytes> inputs = seeds();
  for (const Bytes& input : inputs) play(input);
  Mutator mutator(seed);
  for (unsigned i = 0; i < kMutations; ++i) play(mutator.mutated(inputs));
  std::printf("%zu seeds and %u mutations\n", inputs.size(), kMutations);
}

}  // namespace
}  // namespace gradcube::fuzz

int main(int argc, char** argv) {
  using namespace gradcube::fuzz;
  if (argc == 3 && std::strcmp(argv[1], "--write-seeds") == 0) {
    unsigned number = 0;
    for (const Bytes& seed : seeds()) {
      write(std::string(argv[2]) + "/seed-" + std::to_string(++number), seed);
    }
    return 0;
  }
  for (int i = 1; i < argc; ++i) play(read(argv[i]));
  if (argc == 1) play_mutations();
  return 0;
}
