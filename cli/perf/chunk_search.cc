#include "cli/perf/chunk_search.h"

#include <algorithm>
#include <bit>

#include "control/hub/chunks.h"
#include "control/model/line_fit.h"

namespace gradcube::cli {
namespace {

using control::hub::kChunkStep;
using control::hub::kMostChunkBytes;

constexpr std::uint64_t kShortest = 8192;

std::uint64_t halfway(std::uint64_t a, std::uint64_t b) {
  return (a + b) / 2 / kChunkStep * kChunkStep;
}

}  // namespace

ChunkSearch::ChunkSearch(std::uint64_t model_bytes) {
  const std::uint64_t shortest = std::clamp(std::bit_ceil(model_bytes / control::hub::kMostChunks),
                                            kShortest, kMostChunkBytes);
  const std::uint64_t longest =
      std::max(shortest, std::bit_ceil(std::min(model_bytes, kMostChunkBytes)));
  next_.push_back(kAuto);
  for (std::uint64_t length = shortest; length <= longest; length *= 2) next_.push_back(length);
}

void ChunkSearch::note(std::uint64_t chunk_bytes, const std::vector<double>& seconds) {
  std::vector<double>& all = measured_[chunk_bytes];
  all.insert(all.end(), seconds.begin(), seconds.end());
}

void ChunkSearch::advance() {
  std::map<std::uint64_t, double> lengths = medians();
  lengths.erase(kAuto);
  const auto best = std::min_element(lengths.begin(), lengths.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  const auto before = lengths.find(centre_);
  const bool gains = before == lengths.end() || best->second < (1 - kGain) * before->second;
  centre_ = best->first;
  next_.clear();
  if (!gains) return;
  const auto add = [&](std::uint64_t neighbour) {
    const std::uint64_t length = halfway(centre_, neighbour);
    if (!lengths.contains(length)) next_.push_back(length);
  };
  if (best != lengths.begin()) add(std::prev(best)->first);
  if (std::next(best) != lengths.end()) add(std::next(best)->first);
  if (!next_.empty()) next_.insert(next_.begin(), {kAuto, centre_});
}

std::map<std::uint64_t, double> ChunkSearch::medians() const {
  std::map<std::uint64_t, double> medians;
  for (const auto& [length, seconds] : measured_) {
    medians[length] = control::model::median(seconds);
  }
  return medians;
}

std::uint64_t ChunkSearch::best() const {
  const std::map<std::uint64_t, double> all = medians();
  const auto best = std::min_element(all.begin(), all.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  const auto standard = all.find(kAuto);
  const bool is_as_good = standard != all.end() && standard->second * (1 - kGain) <= best->second;
  return is_as_good ? kAuto : best->first;
}

}  // namespace gradcube::cli
