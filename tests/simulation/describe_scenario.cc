// A scenario in words, for what went wrong with it.

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/simulation/scenario.h"

namespace gradcube::simulation {

namespace {

// What describe() says of absent servers.
std::string without(const control::Topology& topology) {
  const std::string absent = topology.absent_text();
  return absent.empty() ? "" : " without " + absent;
}

}  // namespace

std::string describe(const Scenario& scenario) {
  constexpr std::array<const char*, kMisfortunes> kNames = {
      "nothing",          "a disagreement", "a leave",        "a death",
      "a scribbled ring", "an overflow",    "a node's death", "a node's restart",
      "a node's pause",   "a mute node",    "a node cut off"};
  const control::ClusterSettings& cluster = scenario.simulation.cluster;
  const dataplane::MessageFaults& messages = scenario.simulation.messages;
  std::string text = fmt::format(
      "{} mtu {} rate {} delay {} queue {} loss {:.4f} dup {:.4f} reorder {:.4f} corrupt {:.4f}, "
      "{} of {} lcores, stalls {}, guests {}, {} in flight, pause {}, rank {} late until {}, "
      "{} at rank {} collective {} for {} ns, messages lost {:.2f} doubled {:.1f} delayed {} us;",
      cluster.topology.spec() + without(cluster.topology), cluster.mtu,
      control::to_json(cluster.rates).dump(), cluster.delay_ns, cluster.queue_bytes, cluster.loss,
      cluster.duplicate, cluster.reorder, cluster.corrupt, cluster.server_lcores,
      scenario.simulation.lcores, scenario.simulation.stalls, scenario.guests,
      scenario.most_in_flight, scenario.pause,
      scenario.late_rank.has_value() ? std::to_string(*scenario.late_rank) : "none",
      scenario.late_until, kNames[static_cast<std::size_t>(scenario.misfortune)], scenario.victim,
      scenario.when + 1, scenario.lasts, messages.loss, messages.duplicate,
      messages.longest_delay.count());
  if (scenario.simulation.messages_pass_the_fabric) text += " in frames;";
  if (scenario.simulation.frames_are_scattered) text += " scattered;";
  if (scenario.simulation.frames_are_authenticated) text += " authenticated;";
  if (const Attack& attack = scenario.simulation.attack; attack.any()) {
    text += fmt::format(" attacked from {} to {}: cuts {:.3f} delays {:.3f} sends {:.2f};",
                        attack.from, attack.until, attack.cuts, attack.delays, attack.sends);
  }
  if (scenario.simulation.links_are_watched) {
    text += fmt::format(" greetings every {} ns;", cluster.greeting_ns.value_or(0));
  }
  if (scenario.simulation.paths_are_probed) {
    text += fmt::format(" probes every {} ns;", cluster.probing_ns.value_or(0));
  }
  for (const Outage& outage : scenario.outages) {
    const std::string what = outage.mtu == 0 ? "down" : fmt::format("of MTU {}", outage.mtu);
    text += fmt::format(" link {} {} from {} to {};", outage.link, what, outage.from, outage.until);
  }
  for (const ScenarioJob& job : scenario.jobs) {
    text += fmt::format(" job: {}, ranks [{}];", describe(job.options, cluster.topology.space()),
                        fmt::join(job.ranks, " "));
  }
  for (std::size_t i = 0; i < scenario.collectives.size(); ++i) {
    const Collective collective = scenario.collective(0, i);
    text += fmt::format(" {}:{}x{}/{}/{}", collective.lane,
                        control::collective_kind_name(collective.kind), collective.count,
                        aggregation::data_type_name(collective.dtype),
                        aggregation::operation_name(collective.operation));
    if (control::has_root(collective.kind)) text += fmt::format("/{}", collective.root);
  }
  return text;
}

}  // namespace gradcube::simulation
