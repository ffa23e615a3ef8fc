// What every peer's benchmark shares, so that the peers are measured alike and as `gradcube perf`
// measures: the same command line, the same timing loop, the same JSON.
//
// One iteration: every rank fills its buffer (untimed), all ranks meet at a barrier, each times its
// own in-place all-reduce, and the iteration costs what its slowest rank took. The result is
// compared with the known sum after every iteration (untimed), because a wrong peer is no peer.
// Sizes are bytes of float32; K, M and G are decimal. Command-line errors are thrown as
// std::invalid_argument, wrong results as std::runtime_error.
#ifndef GRADCUBE_TESTS_BENCH_PEERS_PEER_BENCH_H_
#define GRADCUBE_TESTS_BENCH_PEERS_PEER_BENCH_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::bench {

struct PeerOptions {
  std::vector<std::size_t> sizes{100'000'000};  // bytes
  int iterations = 5;
  int warmup = 1;
  int rank = 0;                       // used only where nothing else tells the rank
  int ranks = 1;                      // likewise
  std::string store;                  // rendezvous directory, shared by the ranks
  std::string address = "127.0.0.1";  // that this rank listens on
};

// What a peer must be able to do; `rank()` is 0-based.
template <typename P>
concept Peer = requires(P peer, std::span<float> buffer, double seconds) {
  { peer.rank() } -> std::convertible_to<int>;
  { peer.ranks() } -> std::convertible_to<int>;
  peer.barrier();
  peer.allreduce_sum(buffer);
  { peer.max_over_ranks(seconds) } -> std::convertible_to<double>;
  { peer.sum_over_ranks(seconds) } -> std::convertible_to<double>;
};

struct PeerResult {
  std::size_t bytes = 0;
  std::vector<double> seconds;  // one per iteration
  double cpu_seconds = 0;       // of all ranks for an iteration, with what is untimed in it
};

inline std::size_t parse_size(std::string_view text) {
  const std::string whole(text);
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(whole, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  double unit = 1;
  if (used + 1 == whole.size()) {
    unit = whole.back() == 'K' ? 1e3 : whole.back() == 'M' ? 1e6 : whole.back() == 'G' ? 1e9 : 0;
  } else if (used != whole.size()) {
    unit = 0;
  }
  if (used == 0 || unit == 0 || !(value >= 0) || value * unit > 1e12) {
    throw std::invalid_argument("size '" + whole + "': a number of bytes, with K, M or G");
  }
  return static_cast<std::size_t>(std::llround(value * unit));
}

inline std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  while (true) {
    const std::size_t comma = text.find(',');
    sizes.push_back(parse_size(text.substr(0, comma)));
    if (comma == std::string_view::npos) return sizes;
    text.remove_prefix(comma + 1);
  }
}

inline int parse_count(std::string_view name, const std::string& text, int least) {
  std::size_t used = 0;
  int value = 0;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < least) {
    throw std::invalid_argument(std::string(name) + " '" + text + "': a whole number, at least " +
                                std::to_string(least));
  }
  return value;
}

inline PeerOptions parse_options(std::span<char* const> arguments) {
  PeerOptions options;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    if (i + 1 == arguments.size()) throw std::invalid_argument(std::string(name) + ": no value");
    const std::string value = arguments[i + 1];
    if (name == "--sizes") {
      options.sizes = parse_sizes(value);
    } else if (name == "--iterations") {
      options.iterations = parse_count(name, value, 1);
    } else if (name == "--warmup") {
      options.warmup = parse_count(name, value, 0);
    } else if (name == "--rank") {
      options.rank = parse_count(name, value, 0);
    } else if (name == "--ranks") {
      options.ranks = parse_count(name, value, 1);
    } else if (name == "--store") {
      options.store = value;
    } else if (name == "--address") {
      options.address = value;
    } else {
      throw std::invalid_argument("unknown option '" + std::string(name) + "'");
    }
  }
  return options;
}

// Rank r contributes r + 1 + i mod 7 at element i: small whole numbers, so every order of addition
// gives the same exact float32 sum.
inline void fill(std::span<float> buffer, int rank) {
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer[i] = static_cast<float>(rank + 1) + static_cast<float>(i % 7);
  }
}

inline void check(std::span<const float> buffer, int ranks) {
  const auto base = static_cast<float>(ranks * (ranks + 1) / 2);
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    if (buffer[i] != base + static_cast<float>(ranks) * static_cast<float>(i % 7)) {
      throw std::runtime_error("wrong sum at element " + std::to_string(i));
    }
  }
}

// Of all threads of this process, in user and system mode.
inline double cpu_seconds() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

template <Peer P>
PeerResult measure(P& peer, std::size_t bytes, const PeerOptions& options) {
  const std::size_t count = bytes / sizeof(float);
  std::vector<float> memory(count);
  const std::span<float> buffer(memory);
  PeerResult result{count * sizeof(float), {}};
  const double spent_before = cpu_seconds();
  for (int i = -options.warmup; i < options.iterations; ++i) {
    fill(buffer, peer.rank());
    peer.barrier();
    const auto start = std::chrono::steady_clock::now();
    peer.allreduce_sum(buffer);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double slowest = peer.max_over_ranks(took.count());
    check(buffer, peer.ranks());
    if (i >= 0) result.seconds.push_back(slowest);
  }
  result.cpu_seconds =
      peer.sum_over_ranks(cpu_seconds() - spent_before) / (options.warmup + options.iterations);
  return result;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline void print_json(const std::vector<PeerResult>& results) {
  std::printf("{\"results\":[");
  const char* separator = "";
  for (const PeerResult& result : results) {
    const auto [least, most] = std::minmax_element(result.seconds.begin(), result.seconds.end());
    std::printf(
        "%s{\"bytes\":%zu,\"seconds_min\":%.9f,\"seconds_median\":%.9f,"
        "\"seconds_max\":%.9f,\"cpu_seconds_each\":%.9f}",
        separator, result.bytes, *least, median(result.seconds), *most, result.cpu_seconds);
    separator = ",";
  }
  std::printf("]}\n");
}

template <Peer P>
void run_peer(P& peer, const PeerOptions& options) {
  std::vector<PeerResult> results;
  for (const std::size_t bytes : options.sizes) results.push_back(measure(peer, bytes, options));
  if (peer.rank() == 0) print_json(results);
}

}  // namespace gradcube::bench

#endif  // GRADCUBE_TESTS_BENCH_PEERS_PEER_BENCH_H_
