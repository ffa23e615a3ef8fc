#include "cli/cluster/settings_options.h"

#include "cli/text/command.h"

namespace gradcube::cli {
namespace {

struct Help {
  std::string_view name;
  const char* text;
};

constexpr Help kHelp[] = {
    {"topology", "bcube:n,k, bcube:4x3x2, star:N or torus:n,h"},
    {"absent",
     "Addresses that have no server: \"3,1 3,2\". Nobody is started there, and nobody waits for "
     "them"},
    {"aggregators",
     "Servers that take no trainers, and are there to aggregate hubs: \"2,2\". Jobs on all servers "
     "are on the others"},
    {"fabric",
     "embedded: all servers and switches in one process; memif: a daemon per server, with emulated "
     "switches between them; veth: a daemon per server, with the kernel's links and bridges (needs "
     "root)"},
    {"rate",
     "Rate of every link, 200mbit, or of each level's, level0=10gbit,level1=1gbit (default: as "
     "fast as the CPU goes)"},
    {"mtu", "Bytes of IP packet per frame, 1500 to 9000"},
    {"delay", "Delay of a switch, on top of serialization: 50us"},
    {"queue", "Bytes of a switch port's queue: 128K, 64Ki"},
    {"ecn-threshold", "Frames are marked when the queue is longer: 64K (default: half the queue)"},
    {"loss", "Probability that a switch loses a frame: 0.01"},
    {"duplicate", "Probability that it delivers a frame twice"},
    {"reorder", "Probability that it delivers a frame after later ones"},
    {"corrupt", "Probability that it damages a frame"},
    {"seed", "Seed of the switches' random numbers"},
    {"packet-memory", "Memory for the packets of all jobs: 512M, 4G (default: by the topology)"},
    {"lcores", "Cores that the daemon uses: 0,1 or 0-3 (default: all that are of use)"},
    {"server-lcores",
     "Lcores of each server, of those that --lcores names, where each has a daemon (default: 1)"},
    {"idle", "spin: poll without end; adaptive: sleep when there is nothing to do"},
    {"trainer-memory",
     "Shared memory that the trainers of a user may use together: 8G (default: half of the "
     "host's)"},
    {"greeting",
     "How often neighbours greet each other: 10ms, 0 for never (default: 80ms, or more on large "
     "clusters; 10ms between hosts whose pollers spin). A link is down after three without an "
     "answer"},
    {"probing",
     "How often servers compare the paths of flows that relays pass on, where links have a rate: "
     "100ms, 0 for never (default: 100ms, or more on large clusters)"},
};

constexpr std::string_view kImpairments[] = {"loss", "duplicate", "reorder", "corrupt"};

const char* help_of(std::string_view name) {
  for (const Help& help : kHelp) {
    if (help.name == name) return help.text;
  }
  return "";
}

}  // namespace

std::span<const std::string_view> SettingsOptions::impairments() { return kImpairments; }

void SettingsOptions::add_all(CLI::App* command) {
  for (const std::string_view name : control::setting_names()) add(command, name);
}

void SettingsOptions::add(CLI::App* command, std::string_view name) {
  Flag& flag = flags_[std::string(name)];
  flag.option = command->add_option("--" + std::string(name), flag.text, help_of(name));
}

bool SettingsOptions::given(std::string_view name) const {
  const auto flag = flags_.find(name);
  return flag != flags_.end() && flag->second.option->count() > 0;
}

void SettingsOptions::apply(control::ClusterSettings& settings) const {
  // In the order of the settings: a topology makes absent servers of another one present.
  for (const std::string_view setting : control::setting_names()) {
    if (!given(setting)) continue;
    const std::string name(setting);
    control::apply_setting(settings, name, flags_.at(name).text, "--" + name);
  }
}

}  // namespace gradcube::cli
