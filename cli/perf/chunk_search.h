// Which length of a hub's chunks is the best: what is to be measured, and what follows from it.
//
// First powers of two are measured, turn by turn, so that a machine whose speed drifts slows all of
// them alike; then, with the best and the default once more, the lengths halfway to the neighbours
// of the best, as long as one is better by more than kGain. Of lengths that are no worse than that
// the default is preferred.
//
// No I/O. One thread.
#ifndef GRADCUBE_CLI_PERF_CHUNK_SEARCH_H_
#define GRADCUBE_CLI_PERF_CHUNK_SEARCH_H_

#include <cstdint>
#include <map>
#include <vector>

namespace gradcube::cli {

class ChunkSearch {
 public:
  static constexpr double kGain = 0.01;
  static constexpr std::uint64_t kAuto = 0;  // the default, by the model's length

  // model_bytes: no chunk is longer than the model, beyond the shortest.
  explicit ChunkSearch(std::uint64_t model_bytes);

  // The lengths to be measured next, each in some turns; empty when it is over.
  const std::vector<std::uint64_t>& next() const { return next_; }
  // The seconds of the iterations of one turn.
  void note(std::uint64_t chunk_bytes, const std::vector<double>& seconds);
  // All of next() has been measured.
  void advance();

  // By length: all seconds, and their medians.
  const std::map<std::uint64_t, std::vector<double>>& measured() const { return measured_; }
  std::map<std::uint64_t, double> medians() const;
  std::uint64_t best() const;

 private:
  std::vector<std::uint64_t> next_;
  std::map<std::uint64_t, std::vector<double>> measured_;
  std::uint64_t centre_ = kAuto;  // the best of the lengths so far
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_CHUNK_SEARCH_H_
