#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/control_client.h"
#include "cli/json_fields.h"
#include "cli/settings_options.h"
#include "cli/status_text.h"
#include "control/base/errors.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

struct ImpairOptions {
  SettingsOptions settings;
  bool json = false;
};

// The request names what the user named; the rest stays as it is.
nlohmann::json request_of(const SettingsOptions& options) {
  control::ClusterSettings settings;
  options.apply(settings);
  const nlohmann::json values = control::to_json(settings);
  nlohmann::json request = {{"command", "impair"}};
  for (const std::string_view name : SettingsOptions::impairments()) {
    const std::string key(name);
    if (options.given(name)) request[key] = values.at(key);
  }
  if (request.size() == 1) {
    throw control::UsageError(
        "impair: nothing to change; accepted are --loss, --duplicate, --reorder and --corrupt, "
        "for example `gradcube impair --loss 0.01`");
  }
  return request;
}

int run_impair(const ImpairOptions& options) {
  const nlohmann::json request = request_of(options.settings);
  const auto directory = control::RunDirectory::from_environment();
  const nlohmann::json answer = ask_daemon(directory, request);
  const nlohmann::json& impairments = field(answer, "impairments");
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"impairments", impairments}}.dump());
  } else {
    fmt::print("the switches' impairments: {}\n", impairments_text(impairments));
  }
  return 0;
}

}  // namespace

void add_impair(CLI::App& tool, Action& action) {
  CLI::App* command =
      tool.add_subcommand("impair", "Change the switches' loss and friends while the cluster runs");
  auto options = std::make_shared<ImpairOptions>();
  for (const std::string_view name : SettingsOptions::impairments()) {
    options->settings.add(command, name);
  }
  command->add_flag("--json", options->json, "One JSON object on standard output");
  command->footer(
      "What is not named stays as it is. Examples:\n"
      "  gradcube impair --loss 0.02 --duplicate 0.02 --reorder 0.05 --corrupt 0.01\n"
      "  gradcube impair --loss 0");
  command->callback([options, &action] { action = [options] { return run_impair(*options); }; });
}

}  // namespace gradcube::cli
