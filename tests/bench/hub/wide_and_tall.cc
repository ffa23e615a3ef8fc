// Ways to divide the aggregation and optimization of a model among threads (PHub, sections 3.2.2
// and 4.5, Figure 7), where all workers' gradients are in memory already:
//
//   wide_and_tall WORKERS THREADS CHUNK ROUNDS KEYS
//
// Each of ROUNDS rounds takes a step of Nesterov's method with the mean of WORKERS gradients of all
// KEYS (elements of float32, "9408,64,64"), in each of these ways:
//
//   tall      keys are cut into chunks of CHUNK bytes, and each chunk belongs to one thread, which
//             adds it and optimizes it in one pass; threads never wait for each other
//   wide      key by key: each thread adds a slice of the key; all wait for all; each optimizes a
//             slice of the sum; all wait for all
//   by_array  as wide, but all wait for all after each worker's array, as calls of a BLAS do
//
// Prints one JSON object: the medians of the rounds' seconds. The ways take turns, each with
// weights of its own. It fails unless all have the same bits in the end.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aggregation/kernels.h"
#include "control/checkpoint/hub_key.h"
#include "control/hub/chunks.h"
#include "control/hub/partition.h"
#include "tests/bench/aggregation/measuring.h"
#include "tests/bench/hub/owned_model.h"
#include "tests/bench/hub/parse_keys.h"

namespace gradcube::bench {
namespace {

constexpr std::size_t kLineElements = 64 / sizeof(float);  // of a cache line

std::size_t in_whole_lines(std::size_t elements) {
  return (elements + kLineElements - 1) / kLineElements * kLineElements;
}

struct Settings {
  std::uint32_t workers = 0;
  unsigned threads = 0;
  std::uint64_t chunk_bytes = 0;
  std::size_t rounds = 0;
  std::vector<std::size_t> keys;  // elements
};

// Where keys and chunks lie in the arrays. Each key begins at a cache line.
struct Layout {
  explicit Layout(const Settings& settings) : chunks_of(settings.threads) {
    std::vector<control::HubKey> named;
    for (const std::size_t key : settings.keys) {
      named.push_back({"key" + std::to_string(named.size()), key});
    }
    named = control::ordered_keys(std::move(named), "KEYS");
    for (const control::HubKey& key : named) {
      keys.push_back({elements, key.elements});
      elements += in_whole_lines(key.elements);
    }
    const auto chunks = control::hub::cut_into_chunks(named, settings.chunk_bytes, "CHUNK");
    std::vector<std::uint64_t> sizes;
    for (const control::hub::Chunk& chunk : chunks) sizes.push_back(chunk.bytes);
    const std::vector<unsigned> weights(settings.threads, 1);
    const auto owners = control::hub::divide_longest_first(sizes, weights);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      chunks_of[owners[i]].push_back(
          {keys[chunks[i].key].first + chunks[i].first_element, chunks[i].elements});
    }
  }

  std::size_t elements = 0;
  std::vector<Range> keys;
  std::vector<std::vector<Range>> chunks_of;  // each thread
};

// All threads call the same way, each with its number, and each on a model that they share.
class Aggregation {
 public:
  explicit Aggregation(const Settings& settings)
      : layout_(settings),
        threads_(settings.threads),
        gradients_(settings.workers, layout_.elements),
        sums_(aggregation::bench::make_memory(layout_.elements * sizeof(float))),
        step_(settings.workers),
        reduce_(aggregation::select_kernels(std::numeric_limits<unsigned>::max())
                    .reduce(aggregation::DataType::float32, aggregation::Operation::sum)),
        barrier_(settings.threads) {}

  std::size_t elements() const { return layout_.elements; }
  void wait_for_all() { barrier_.arrive_and_wait(); }

  void tall(const OwnedModel& model, unsigned thread) {
    std::vector<const void*> sources(gradients_.workers());
    for (const Range& chunk : layout_.chunks_of[thread]) {
      gradients_.point_at(chunk.first, sources);
      step_.optimize(model.from(chunk.first), sources.data(), sources.size(), chunk.count,
                     step_.numbers);
    }
  }

  void wide(const OwnedModel& model, unsigned thread) {
    std::vector<const void*> sources(gradients_.workers());
    for (const Range& key : layout_.keys) {
      const Range slice = slice_of(key, thread);
      gradients_.point_at(slice.first, sources);
      reduce_(sum_from(slice.first), sources.data(), sources.size(), slice.count);
      wait_for_all();
      optimize_sum(model, slice);
      wait_for_all();
    }
  }

  void by_array(const OwnedModel& model, unsigned thread) {
    std::vector<const void*> sources(gradients_.workers());
    for (const Range& key : layout_.keys) {
      const Range slice = slice_of(key, thread);
      gradients_.point_at(slice.first, sources);
      float* const sum = sum_from(slice.first);
      reduce_(sum, sources.data(), 1, slice.count);
      wait_for_all();
      for (std::size_t worker = 1; worker < sources.size(); ++worker) {
        const void* both[] = {sum, sources[worker]};
        reduce_(sum, both, 2, slice.count);
        wait_for_all();
      }
      optimize_sum(model, slice);
      wait_for_all();
    }
  }

 private:
  // In whole cache lines, so that no two threads write one.
  Range slice_of(const Range& key, unsigned thread) const {
    const std::size_t each = in_whole_lines((key.count + threads_ - 1) / threads_);
    const std::size_t begin = std::min(key.count, each * thread);
    return {key.first + begin, std::min(key.count - begin, each)};
  }
  float* sum_from(std::size_t first) const { return reinterpret_cast<float*>(sums_.get()) + first; }
  void optimize_sum(const OwnedModel& model, const Range& slice) const {
    const void* const sum = sum_from(slice.first);
    step_.optimize(model.from(slice.first), &sum, 1, slice.count, step_.numbers);
  }

  const Layout layout_;
  const unsigned threads_;
  const Gradients gradients_;
  const aggregation::bench::Memory sums_;
  const NesterovStep step_;
  const aggregation::ReduceFunction reduce_;
  std::barrier<> barrier_;
};

struct Way {
  const char* name;
  void (Aggregation::*round)(const OwnedModel& model, unsigned thread);
  std::unique_ptr<OwnedModel> model;
  std::vector<double> seconds;  // of each round
};

// Thread 0 measures: from when all threads are there until all are done.
void take_rounds(Aggregation& aggregation, std::span<Way> ways, std::size_t rounds,
                 unsigned thread) {
  for (std::size_t round = 0; round < rounds + 1; ++round) {
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      Way& way = ways[(round + turn) % ways.size()];
      aggregation.wait_for_all();
      const auto begin = std::chrono::steady_clock::now();
      (aggregation.*way.round)(*way.model, thread);
      aggregation.wait_for_all();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      // The first round is no steady state.
      if (thread == 0 && round != 0) way.seconds.push_back(passed.count());
    }
  }
}

Settings parse(std::span<const std::string> arguments) {
  Settings settings;
  settings.workers = static_cast<std::uint32_t>(std::stoul(arguments[0]));
  settings.threads = static_cast<unsigned>(std::stoul(arguments[1]));
  settings.chunk_bytes = std::stoull(arguments[2]);
  settings.rounds = std::stoul(arguments[3]);
  settings.keys = parse_keys(arguments[4]);
  if (settings.workers == 0 || settings.threads == 0 || settings.rounds == 0) {
    throw std::invalid_argument("WORKERS, THREADS and ROUNDS: expected 1 or more");
  }
  return settings;
}

int run(std::span<const std::string> arguments) {
  if (arguments.size() != 5) {
    std::fprintf(stderr, "usage: wide_and_tall WORKERS THREADS CHUNK ROUNDS KEYS\n");
    return 2;
  }
  const Settings settings = parse(arguments);
  Aggregation aggregation(settings);
  Way ways[] = {{"tall", &Aggregation::tall, nullptr, {}},
                {"wide", &Aggregation::wide, nullptr, {}},
                {"by_array", &Aggregation::by_array, nullptr, {}}};
  for (Way& way : ways) way.model = std::make_unique<OwnedModel>(aggregation.elements());
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < settings.threads; ++thread) {
    others.emplace_back([&, thread] { take_rounds(aggregation, ways, settings.rounds, thread); });
  }
  take_rounds(aggregation, ways, settings.rounds, 0);
  for (std::thread& other : others) other.join();
  for (const Way& way : ways) {
    if (!way.model->has_bits_of(*ways[0].model)) {
      throw std::runtime_error(std::string(way.name) + " has other weights than tall");
    }
  }
  const char* separator = "{";
  for (const Way& way : ways) {
    std::printf("%s\"%s_seconds_median\":%.9f", separator, way.name,
                aggregation::bench::median(way.seconds));
    separator = ",";
  }
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return gradcube::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wide_and_tall: %s\n", error.what());
    return 1;
  }
}
