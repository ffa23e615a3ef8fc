#include "cli/model/merge_profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/text/json_fields.h"
#include "cli/text/json_file.h"

namespace gradcube::cli {
namespace {

using control::merge::Iteration;
using control::merge::Layer;
using nlohmann::json;

// The policies compare each layer with each.
constexpr std::size_t kMostLayers = 10'000;
// So that the sums of all layers are exact.
constexpr std::uint64_t kMostLayerBytes = 1'000'000'000'000;

// `where` is empty, or tells the layer, as the output counts them: "layer 3: ".
double seconds_of(const JsonFile& file, const json& object, std::string_view name,
                  std::string_view where = "") {
  const auto seconds = number_field(object, name);
  if (!seconds || !(*seconds >= 0 && *seconds <= control::merge::kMostSeconds)) {
    file.refuse(fmt::format("{}\"{}\" is no time in seconds, 0 to 10^9", where, name));
  }
  return *seconds;
}

double beta_of(const JsonFile& file, const json& profile) {
  const auto beta = number_field(profile, "beta");
  if (!beta || !(*beta >= 0 && *beta <= control::merge::kMostSecondsPerByte)) {
    file.refuse("\"beta\" is no time in seconds for a byte, 0 to 1");
  }
  return *beta;
}

Layer layer_of(const JsonFile& file, const json& layer, std::size_t index) {
  const std::string where = fmt::format("layer {}: ", index + 1);
  const auto bytes = number_field(layer, "bytes");
  if (!bytes || !(*bytes >= 1 && *bytes <= static_cast<double>(kMostLayerBytes)) ||
      *bytes != static_cast<double>(static_cast<std::uint64_t>(*bytes))) {
    file.refuse(fmt::format(
        "{}\"bytes\" is no whole number, 1 to 10^12; a layer without gradients sends nothing: add "
        "its time to the layer before it",
        where));
  }
  return {.bytes = static_cast<std::uint64_t>(*bytes),
          .backward_seconds = seconds_of(file, layer, "backward_seconds", where)};
}

}  // namespace

Iteration read_merge_profile(const std::string& path) {
  const JsonFile file("--profile", path,
                      R"({"alpha":seconds,"beta":seconds per byte,"forward_seconds":seconds,)"
                      R"("layers":[{"bytes":..,"backward_seconds":..},...]})");
  const json profile = file.content();
  if (!profile.is_object()) file.refuse("it is no profile");
  Iteration iteration{
      .cost = {.a = seconds_of(file, profile, "alpha"), .b = beta_of(file, profile)},
      .forward_seconds = 0,
      .layers = {}};
  if (profile.contains("forward_seconds")) {
    iteration.forward_seconds = seconds_of(file, profile, "forward_seconds");
  }
  const json& layers = items(profile, "layers");
  if (layers.empty()) file.refuse("\"layers\" is no list with a layer");
  if (layers.size() > kMostLayers) {
    file.refuse(fmt::format("\"layers\" has {} layers, but at most {} can be merged", layers.size(),
                            kMostLayers));
  }
  for (std::size_t index = 0; index < layers.size(); ++index) {
    iteration.layers.push_back(layer_of(file, layers[index], index));
  }
  return iteration;
}

nlohmann::ordered_json merge_profile_json(const Iteration& iteration,
                                          const std::vector<std::string>& names) {
  auto layers = nlohmann::ordered_json::array();
  for (std::size_t l = 0; l < names.size(); ++l) {
    layers.push_back({{"name", names[l]},
                      {"bytes", iteration.layers[l].bytes},
                      {"backward_seconds", iteration.layers[l].backward_seconds}});
  }
  return {{"alpha", iteration.cost.a},
          {"beta", iteration.cost.b},
          {"forward_seconds", iteration.forward_seconds},
          {"layers", std::move(layers)}};
}

}  // namespace gradcube::cli
