#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/control_client.h"
#include "cli/launch/host_group.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(40);
constexpr std::int64_t kMillisecond = 1'000'000;  // ns
// By then all hosts of a launcher have been told.
constexpr std::int64_t kShortestOnHosts = 60'000'000'000;  // ns

struct RekeyOptions {
  std::string window = "60s";
  bool json = false;
};

// What a daemon answers (dataplane/daemon/process/key_change.h), as sentences.
std::string text_of(const nlohmann::json& answer) {
  const std::string key = cell_text(answer, "key");
  const auto ends = count_field(answer, "ends_in_ms");
  if (!ends) {
    return fmt::format(
        "frames are made and taken by the key {} alone, which the key file has: to change it, put "
        "another one there\n",
        key);
  }
  const auto seconds = [](std::uint64_t ms) { return (ms + 999) / 1000; };
  const std::string other = cell_text(answer, "other_key");
  if (const auto makes = count_field(answer, "makes_in_ms")) {
    return fmt::format(
        "frames by the keys {0} and {1} are taken; in {2} s they are made by {1}, and in {3} s {0} "
        "is refused\n",
        key, other, seconds(*makes), seconds(*ends));
  }
  return fmt::format("frames are made by the key {}; {} is refused in {} s\n", key, other,
                     seconds(*ends));
}

// The first host's answer, once all have begun.
nlohmann::json ask_hosts(const ClusterHosts& hosts, const std::string& window) {
  HostGroup group(hosts);
  const nlohmann::json request = {{"words", {"rekey", "--json", "--window", window}},
                                  {"cluster", hosts.cluster}};
  HostGroup::Answers answers = group.ask(request, kPatience);
  answers.note_failed_commands();
  answers.require_all(hosts);
  return nlohmann::json::parse(text_field(answers.values.front(), "output").value_or(""), nullptr,
                               false);
}

int run_rekey(const RekeyOptions& options) {
  const std::int64_t window = control::parse_duration(options.window, "--window");
  const auto directory = control::RunDirectory::from_environment();
  nlohmann::json answer;
  if (const auto hosts = hosts_to_ask(directory)) {
    if (window < kShortestOnHosts) {
      throw control::UsageError(fmt::format(
          "--window {}: to reach {} hosts may take longer: expected 60s or more; or, for this host "
          "alone, {}=1 in the environment",
          control::quoted(options.window), hosts->names.size(), kThisHostAlone));
    }
    answer = ask_hosts(*hosts, options.window);
  } else {
    answer = ask_daemon(directory, {{"command", "rekey"},
                                    {"window_ms", (window + kMillisecond - 1) / kMillisecond}});
    answer.erase("ok");
  }
  print("{}", options.json ? answer.dump() + "\n" : text_of(answer));
  return 0;
}

}  // namespace

void add_rekey(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "rekey", "Change the cluster's key for the one that its key file has now; jobs go on");
  auto& options = options_of<RekeyOptions>(command, action, run_rekey);
  add_text(command, "--window", options.window,
           "Time within which the daemons of all hosts are told: 60s, 300s. 0s: change at once, "
           "without waiting for other hosts");
  command->add_flag("--json", options.json, "Print one JSON object");
  command->footer(
      "Put the same new key file in the place of the former on every host, then type this on\n"
      "every host, with the same window and within it; once, on any of them, where `up` has\n"
      "started the daemons of several hosts. From then on frames by both keys are taken; after\n"
      "the window they are made by the new key, and after another one the former is refused. A\n"
      "job that runs keeps the key by which it has begun: `gradcube status --json` shows each\n"
      "one's. A host that was forgotten: within the window as elsewhere, after it with --window\n"
      "0s.\n"
      "Examples:\n"
      "  gradcube keygen new.key             then, on every host:\n"
      "  mv new.key /etc/gradcube/cube.key\n"
      "  gradcube rekey --window 300s\n"
      "  GRADCUBE_THIS_HOST=1 gradcube rekey --window 0s     on a host that was forgotten");
}

}  // namespace gradcube::cli
