#include "control/settings/cluster_fingerprint.h"

#include <fmt/format.h>

namespace gradcube::control {

std::string agreement_text(const ClusterSettings& settings, const DaemonChoices& choices) {
  std::string text = fmt::format("greeting {} messages {} segment {} block {} checksums {}",
                                 choices.greeting_ns, choices.message_format, choices.segment_bytes,
                                 choices.block_bytes, choices.checksums ? "yes" : "no");
  for (const Setting& setting : kSettings) {
    if (setting.reach != Reach::cluster) continue;
    const std::string value = setting.form.text(settings);
    if (!value.empty()) text += fmt::format(" {} {}", setting.name, value);
  }
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
