#include "cli/cluster/settings_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gradcube::cli {

void SettingsOptions::add_all(CLI::App* command) {
  for (const control::Setting& setting : control::kSettings) add(command, setting);
}

CLI::Option* SettingsOptions::add(CLI::App* command, std::string_view name) {
  return add(command, *std::find_if(std::begin(control::kSettings), std::end(control::kSettings),
                                    [name](const auto& setting) { return setting.name == name; }));
}

CLI::Option* SettingsOptions::add(CLI::App* command, const control::Setting& setting) {
  const std::string name(setting.name);
  Flag& flag = flags_[name];
  flag.option = command->add_option("--" + name, flag.text, setting.help);
  return flag.option;
}

bool SettingsOptions::given(std::string_view name) const {
  const auto flag = flags_.find(name);
  return flag != flags_.end() && flag->second.option->count() > 0;
}

void SettingsOptions::replace(std::string_view name, std::string text) {
  flags_.find(name)->second.text = std::move(text);
}

void SettingsOptions::apply(control::ClusterSettings& settings) const {
  // In the order of the settings: a topology makes absent servers of another one present.
  for (const control::Setting& setting : control::kSettings) {
    if (!given(setting.name)) continue;
    const std::string name(setting.name);
    setting.form.apply(settings, flags_.at(name).text, "--" + name);
  }
}

}  // namespace gradcube::cli
