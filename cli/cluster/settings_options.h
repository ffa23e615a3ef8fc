// Flags that set a cluster's settings: one for each row of control's kSettings, with its help. The
// row reads the value, too, so a flag and a key of the cluster file accept the same text.
#ifndef GRADCUBE_CLI_CLUSTER_SETTINGS_OPTIONS_H_
#define GRADCUBE_CLI_CLUSTER_SETTINGS_OPTIONS_H_

#include <CLI/App.hpp>
#include <map>
#include <string>
#include <string_view>

#include "control/settings/cluster_settings.h"

namespace gradcube::cli {

class SettingsOptions {
 public:
  // Adds --<name> for each of the settings. This must outlive the parsing.
  void add_all(CLI::App* command);
  CLI::Option* add(CLI::App* command, std::string_view name);

  // Whether the flag was on the command line.
  bool given(std::string_view name) const;

  // What it said.
  std::string_view text(std::string_view name) const { return flags_.find(name)->second.text; }

  // Another text in place of what it said.
  void replace(std::string_view name, std::string text);

  // Applies the flags that were given. Throws UsageError.
  void apply(control::ClusterSettings& settings) const;

 private:
  struct Flag {
    std::string text;
    CLI::Option* option = nullptr;
  };

  CLI::Option* add(CLI::App* command, const control::Setting& setting);

  std::map<std::string, Flag, std::less<>> flags_;  // a map's elements stay where they are
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_SETTINGS_OPTIONS_H_
