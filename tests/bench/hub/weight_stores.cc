// Stores into the caches against stores that bypass them, where new weights are sent (PHub, section
// 4.5, Table 4):
//
//   weight_stores WORKERS CHUNK ROUNDS ELEMENTS
//
// One thread has a model of ELEMENTS in float32. In chunks of CHUNK bytes, a multiple of 64, it
// adds WORKERS gradients, takes a step of Nesterov's method, and then copies the chunk's new
// weights, packet by packet, as sending does. Once the stores of weights and momentum are ordinary
// ones (`cached`), once non-temporal (`streamed`).
//
// Prints one JSON object: the medians of ROUNDS rounds' seconds, for a pass over the model, or
// {"skipped":WHY}. The two take turns. It fails unless both have the same bits in the end.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/aggregation/measuring.h"
#include "tests/bench/hub/owned_model.h"
#include "tests/bench/hub/streaming_optimizer.h"

namespace gradcube::bench {
namespace {

constexpr std::size_t kPacketBytes = 1408;                  // of weights
constexpr std::size_t kRoundBytes = std::size_t{16} << 20;  // at least, so that clocks are exact

struct Settings {
  std::size_t workers = 0;
  std::size_t chunk_elements = 0;
  std::size_t rounds = 0;
  std::size_t elements = 0;
};

// Into one packet again and again: what counts is from where weights are read.
void send(const float* weights, std::size_t count) {
  alignas(64) static std::byte packet[kPacketBytes];
  const std::byte* const from = reinterpret_cast<const std::byte*>(weights);
  const std::size_t bytes = count * sizeof(float);
  for (std::size_t at = 0; at < bytes; at += kPacketBytes) {
    std::memcpy(packet, from + at, std::min(kPacketBytes, bytes - at));
    asm volatile("" : : "r"(packet) : "memory");  // the copy has a reader
  }
}

struct Side {
  Side(const char* side_name, aggregation::OptimizeFunction function, std::size_t elements)
      : name(side_name), optimize(function), model(elements) {}

  void pass(const Settings& settings, const Gradients& gradients,
            const aggregation::OptimizerStep& step) {
    std::vector<const void*> sources(gradients.workers());
    for (std::size_t first = 0; first < settings.elements; first += settings.chunk_elements) {
      const std::size_t count = std::min(settings.chunk_elements, settings.elements - first);
      const aggregation::OptimizerArrays arrays = model.from(first);
      gradients.point_at(first, sources);
      optimize(arrays, sources.data(), sources.size(), count, step);
      send(arrays.weights, count);
    }
  }

  const char* name;
  aggregation::OptimizeFunction optimize;
  OwnedModel model;
  std::vector<double> seconds;  // of a pass
};

Settings parse(std::span<const std::string> arguments) {
  Settings settings;
  settings.workers = std::stoul(arguments[0]);
  const std::size_t chunk_bytes = std::stoul(arguments[1]);
  settings.chunk_elements = chunk_bytes / sizeof(float);
  settings.rounds = std::stoul(arguments[2]);
  settings.elements = std::stoul(arguments[3]);
  if (settings.workers == 0 || settings.rounds == 0 || settings.elements == 0) {
    throw std::invalid_argument("WORKERS, ROUNDS and ELEMENTS: expected 1 or more");
  }
  if (chunk_bytes == 0 || chunk_bytes % 64 != 0) {
    throw std::invalid_argument("CHUNK: expected a multiple of 64");
  }
  return settings;
}

int run(std::span<const std::string> arguments) {
  if (arguments.size() != 4) {
    std::fprintf(stderr, "usage: weight_stores WORKERS CHUNK ROUNDS ELEMENTS\n");
    return 2;
  }
  const Settings settings = parse(arguments);
  const aggregation::OptimizeFunction streaming = streaming_nesterov();
  if (streaming == nullptr) {
    std::printf("{\"skipped\":\"this machine has no AVX2\"}\n");
    return 0;
  }
  const Gradients gradients(settings.workers, settings.elements);
  const NesterovStep step(1);
  Side sides[] = {{"cached", step.optimize, settings.elements},
                  {"streamed", streaming, settings.elements}};
  const std::size_t pass_bytes = (settings.workers + 2) * settings.elements * sizeof(float);
  const std::size_t passes = (kRoundBytes + pass_bytes - 1) / pass_bytes;
  for (std::size_t round = 0; round < settings.rounds + 1; ++round) {
    for (std::size_t turn = 0; turn < 2; ++turn) {
      Side& side = sides[(round + turn) % 2];
      const double begin = aggregation::bench::thread_seconds();
      for (std::size_t i = 0; i < passes; ++i) side.pass(settings, gradients, step.numbers);
      const double passed = aggregation::bench::thread_seconds() - begin;
      // The first round is no steady state.
      if (round != 0) side.seconds.push_back(passed / static_cast<double>(passes));
    }
  }
  if (!sides[1].model.has_bits_of(sides[0].model)) {
    throw std::runtime_error("streamed has other weights than cached");
  }
  std::printf("{\"cached_seconds_median\":%.9f,\"streamed_seconds_median\":%.9f}\n",
              aggregation::bench::median(sides[0].seconds),
              aggregation::bench::median(sides[1].seconds));
  return 0;
}

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return gradcube::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weight_stores: %s\n", error.what());
    return 1;
  }
}
