#include "cli/cluster/measurements.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cluster/run_file.h"
#include "cli/text/json_fields.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kMeasuredFile = "measured.json";

}  // namespace

Measurements Measurements::read(const control::RunDirectory& directory,
                                const std::string& cluster) {
  Measurements measurements;
  measurements.cluster_ = cluster;
  const json content = read_run_file(directory, kMeasuredFile);
  if (text_field(content, "cluster") != cluster) return measurements;
  for (const json& entry : items(content, "all_reduce")) {
    const auto algorithm = text_field(entry, "algorithm");
    const auto bytes = count_field(entry, "bytes");
    const auto seconds = number_field(entry, "seconds");
    if (!algorithm || !bytes || !seconds) continue;
    measurements.note(*algorithm, *bytes, *seconds);
  }
  return measurements;
}

std::optional<double> Measurements::seconds(const std::string& algorithm,
                                            std::uint64_t bytes) const {
  const auto found = all_.find({algorithm, bytes});
  if (found == all_.end()) return std::nullopt;
  return found->second;
}

void Measurements::note(const std::string& algorithm, std::uint64_t bytes, double seconds) {
  const std::pair key{algorithm, bytes};
  if (!std::isfinite(seconds) || seconds <= 0) return;
  if (all_.size() >= kMostEntries && !all_.contains(key)) return;
  all_[key] = seconds;
}

void Measurements::write(const control::RunDirectory& directory) const {
  json entries = json::array();
  for (const auto& [key, seconds] : all_) {
    entries.push_back({{"algorithm", key.first}, {"bytes", key.second}, {"seconds", seconds}});
  }
  write_run_file(directory, kMeasuredFile,
                 {{"cluster", cluster_}, {"all_reduce", std::move(entries)}});
}

}  // namespace gradcube::cli
