#include "control/settings/cluster_fingerprint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gradcube::control {

std::string agreement_text(const ClusterSettings& settings, const DaemonChoices& choices) {
  std::string text = fmt::format(
      "topology {} mtu {} rate {} greeting {} messages {} segment {} block {} checksums {}",
      settings.topology.spec(), settings.mtu, to_json(settings.rates).dump(), choices.greeting_ns,
      choices.message_format, choices.segment_bytes, choices.block_bytes,
      choices.checksums ? "yes" : "no");
  const std::string absent = settings.topology.absent_text();
  if (!absent.empty()) text += " absent " + absent;
  const std::string aggregators = aggregators_text(settings.topology, settings.aggregators);
  if (!aggregators.empty()) text += " aggregators " + aggregators;
  return text;
}

std::uint32_t cluster_fingerprint(const ClusterSettings& settings, const DaemonChoices& choices) {
  constexpr std::uint32_t kOffsetBasis = 2166136261;
  constexpr std::uint32_t kPrime = 16777619;
  std::uint32_t hash = kOffsetBasis;
  for (const char letter : agreement_text(settings, choices)) {
    hash = (hash ^ static_cast<std::uint8_t>(letter)) * kPrime;
  }
  return hash;
}

}  // namespace gradcube::control
