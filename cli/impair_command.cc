#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/control_client.h"
#include "cli/json_fields.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/settings_options.h"
#include "cli/status_text.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

constexpr unsigned kMostLevels = 255;  // the daemon knows how many there are

struct ImpairOptions {
  SettingsOptions settings;
  std::string server;
  std::string level;
  std::string switch_name;
  bool clear = false;
  bool json = false;
};

// Only what the user named; the daemon leaves the rest as it is.
nlohmann::json request_of(const ImpairOptions& options) {
  control::ClusterSettings settings;
  options.settings.apply(settings);
  const nlohmann::json values = control::to_json(settings);
  nlohmann::json request = {{"command", "impair"}};
  if (options.clear) request["clear"] = true;
  for (const std::string_view name : SettingsOptions::impairments()) {
    const std::string key(name);
    if (options.settings.given(name)) request[key] = values.at(key);
  }
  if (request.size() == 1) {
    throw control::UsageError(
        "impair: there is nothing to change; expected --loss, --duplicate, --reorder, "
        "--corrupt and --clear, for example `gradcube impair --loss 0.01`");
  }
  if (!options.server.empty()) request["server"] = options.server;
  if (!options.level.empty()) {
    request["level"] = control::parse_integer(options.level, "--level", 0, kMostLevels);
  }
  if (!options.switch_name.empty()) {
    const bool ascii = std::all_of(options.switch_name.begin(), options.switch_name.end(),
                                   [](char letter) { return letter >= ' ' && letter <= '~'; });
    if (!ascii) {
      throw control::UsageError(fmt::format("--switch {}: there is no such switch",
                                            control::quoted(options.switch_name)));
    }
    request["switch"] = options.switch_name;
  }
  return request;
}

int run_impair(const ImpairOptions& options) {
  const nlohmann::json request = request_of(options);
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
  for (const std::string_view name : SettingsOptions::impairments()) {
    options->settings.add(command, name);
  }
  command->add_flag("--clear", options->clear,
                    "Set all four to 0; flags beside it are applied after that");
  command
      ->add_option("--server", options->server,
                   "Only the links of this server, by its address: 2,1")
      ->check(not_empty());
  command->add_option("--level", options->level, "Only the links of this level: 1")
      ->check(not_empty());
  command
      ->add_option("--switch", options->switch_name,
                   "Only the links of this switch, as `gradcube status` names it: '1/[*,2]'")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace

void add_impair(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "impair",
      "Make links lose, duplicate, reorder or damage frames while the cluster runs, like tc netem");
  auto options = std::make_shared<ImpairOptions>();
  add_options(command, options.get());
  command->footer(
      "A link joins a server to a switch; it harms the frames that the server sends. --server,\n"
      "--level and --switch choose the links that fit all of them; without one, all links are "
      "chosen.\n"
      "A probability that is not given stays as it is.\n"
      "Examples:\n"
      "  gradcube impair --loss 0.02 --duplicate 0.02 --reorder 0.05 --corrupt 0.01\n"
      "  gradcube impair --server 2,1 --loss 0.1              both links of server [2,1]\n"
      "  gradcube impair --server 2,1 --level 1 --loss 0.1    one link\n"
      "  gradcube impair --switch '1/[*,2]' --loss 0.1        all links of a switch\n"
      "  gradcube impair --server 2,1 --clear                 take it back there\n"
      "  gradcube impair --clear                              take everything back");
  command->callback([options, &action] { action = [options] { return run_impair(*options); }; });
}

}  // namespace gradcube::cli
