#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/cluster/control_client.h"
#include "cli/cluster/settings_options.h"
#include "cli/status/status_text.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/settings/impairments.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

constexpr unsigned kMostPorts = 255;  // the daemon knows how many there are

struct ImpairOptions {
  SettingsOptions settings;
  bool down = false;
  bool up = false;
  std::optional<unsigned> mtu;
  std::string server;
  std::optional<unsigned> level;
  std::optional<unsigned> port;
  std::string switch_name;
  bool clear = false;
  bool json = false;
};

// What is to become of the links that are chosen; only what the user named.
nlohmann::json changes(const ImpairOptions& options) {
  nlohmann::json request = nlohmann::json::object();
  if (options.clear) request["clear"] = true;
  for (const control::Probability& probability : control::kProbabilities) {
    const std::string name(probability.name);
    if (!options.settings.given(name)) continue;
    request[name] = control::parse_probability(options.settings.text(name), "--" + name);
  }
  if (options.mtu) request["mtu"] = *options.mtu;
  if (options.down || options.up) request["up"] = options.up;
  if (request.empty()) {
    throw control::UsageError(
        "impair: there is nothing to change; expected --loss, --duplicate, --reorder, "
        "--corrupt, --mtu, --down, --up and --clear, for example `gradcube impair --loss 0.01`");
  }
  return request;
}

// Which links: all that fit what it names.
nlohmann::json choice(const ImpairOptions& options) {
  nlohmann::json request = nlohmann::json::object();
  if (!options.server.empty()) request["server"] = options.server;
  if (options.level) request["level"] = *options.level;
  if (options.port) request["port"] = *options.port;
  if (!options.switch_name.empty()) request["switch"] = options.switch_name;
  return request;
}

int run_impair(const ImpairOptions& options) {
  nlohmann::json request = {{"command", "impair"}};
  request.update(changes(options));
  request.update(choice(options));
  const auto directory = control::RunDirectory::from_environment();
  const nlohmann::json answer = ask_daemon(directory, request);
  if (options.json) {
    print("{}\n", nlohmann::json{{"changed", field(answer, "changed")},
                                 {"impairments", field(answer, "impairments")},
                                 {"impaired_links", field(answer, "impaired_links")}}
                      .dump());
  } else {
    const std::string changed = cell_text(answer, "changed");
    print("changed {} {}\nimpairments: {}\n{}", changed, changed == "1" ? "link" : "links",
          impairments_summary(answer), impaired_links_text(answer));
  }
  return 0;
}

void add_options(CLI::App* command, ImpairOptions* options) {
  for (const control::Probability& probability : control::kProbabilities) {
    options->settings.add(command, probability.name);
  }
  command
      ->add_option("--mtu", options->mtu,
                   "Drop what is longer than an IP packet of so many bytes, as a switch with a "
                   "smaller MTU does; 0: nothing is too long")
      ->check(whole_number_in(0, control::kMaxMtu));
  CLI::Option* down = command->add_flag("--down", options->down, "Take links down");
  command->add_flag("--up", options->up, "Bring links up again")->excludes(down);
  command->add_flag("--clear", options->clear,
                    "Set all of these to 0, and links up; flags beside it are applied after that");
  add_text(command, "--server", options->server,
           "Only the links of this server, by its address: 2,1");
  command->add_option("--level", options->level, "Only the links of this level: 1")
      ->check(whole_number_in(0, kMostPorts));
  command
      ->add_option("--port", options->port,
                   "Only those of the servers' ports of this number: the level's; on a torus 2l "
                   "and 2l+1 of level l, which lead to the next digit and to the one before")
      ->check(whole_number_in(0, kMostPorts));
  add_text(command, "--switch", options->switch_name,
           "Only the links of this switch, as `gradcube status` names it: '1/[*,2]'");
  command->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace

void add_impair(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "impair",
      "Take links down, or make them lose, duplicate, reorder or damage frames, or drop long ones, "
      "while the cluster runs, like tc netem");
  auto& options = options_of<ImpairOptions>(command, action, run_impair);
  add_options(command, &options);
  command->footer(
      "A link joins a server to a switch, or on a torus to a neighbour; it harms the frames that\n"
      "the server sends. One that is down carries none in either direction. --server, --level,\n"
      "--port and --switch choose the links that fit all of them; without one, all links are\n"
      "chosen.\n"
      "What is not given stays as it is.\n"
      "Examples:\n"
      "  gradcube impair --loss 0.02 --duplicate 0.02 --reorder 0.05 --corrupt 0.01\n"
      "  gradcube impair --server 2,1 --loss 0.1              both links of server [2,1]\n"
      "  gradcube impair --server 2,1 --level 1 --loss 0.1    one link\n"
      "  gradcube impair --switch '1/[*,2]' --loss 0.1        all links of a switch\n"
      "  gradcube impair --server 2,1 --mtu 1400              long frames of a server do not pass\n"
      "  gradcube impair --server 2,1 --port 0 --down         one link carries nothing\n"
      "  gradcube impair --switch '1/[*,2]' --down            a whole switch is gone\n"
      "  gradcube impair --up                                 all links carry frames again\n"
      "  gradcube impair --server 2,1 --clear                 take it back there\n"
      "  gradcube impair --clear                              take everything back");
}

}  // namespace gradcube::cli
