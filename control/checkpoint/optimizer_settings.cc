#include "control/checkpoint/optimizer_settings.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

using aggregation::OptimizerRule;
using aggregation::OptimizerSettings;

constexpr unsigned of(OptimizerRule rule) { return 1U << static_cast<unsigned>(rule); }
constexpr unsigned kMomentum = of(OptimizerRule::momentum) | of(OptimizerRule::nesterov);
constexpr unsigned kAdaptive = of(OptimizerRule::adam) | of(OptimizerRule::adamw);
constexpr unsigned kAll = of(OptimizerRule::sgd) | kMomentum | kAdaptive;

struct Setting {
  std::string_view name;
  double OptimizerSettings::*value;
  unsigned rules;  // that have it
  bool (*fits)(double);
  std::string_view expected;
};

// Of float32, in which the kernels have them.
constexpr double kLeast = static_cast<double>(std::numeric_limits<float>::denorm_min());
constexpr double kMost = static_cast<double>(std::numeric_limits<float>::max());

constexpr double kNoClip = std::numeric_limits<double>::infinity();

bool is_least_0(double value) { return value >= 0 && value <= kMost; }
bool is_positive(double value) { return value >= kLeast && value <= kMost; }
bool is_below_1(double value) { return value >= 0 && value < 1; }

constexpr std::array kSettings = {
    Setting{"lr", &OptimizerSettings::learning_rate, kAll, is_least_0, "0 to 3.4e38"},
    Setting{"momentum", &OptimizerSettings::momentum, kMomentum,
            [](double value) { return value > 0 && value < 1; }, "more than 0 and less than 1"},
    Setting{"dampening", &OptimizerSettings::dampening, of(OptimizerRule::momentum),
            [](double value) { return value >= 0 && value <= 1; }, "0 to 1"},
    Setting{"beta1", &OptimizerSettings::beta1, kAdaptive, is_below_1, "0 or more and less than 1"},
    Setting{"beta2", &OptimizerSettings::beta2, kAdaptive, is_below_1, "0 or more and less than 1"},
    // 0 would divide zeros by zero.
    Setting{"eps", &OptimizerSettings::epsilon, kAdaptive, is_positive, "1.5e-45 to 3.4e38"},
    Setting{"weight-decay", &OptimizerSettings::weight_decay, kAll, is_least_0, "0 to 3.4e38"},
    Setting{"clip", &OptimizerSettings::clip, kAll,
            [](double value) { return is_positive(value) || value == kNoClip; },
            "1.5e-45 to 3.4e38, or inf"},
};

[[noreturn]] void refuse_settings(std::string_view where, const std::string& what) {
  throw UsageError(std::string(where) + ": " + what);
}

// The shortest text that reads back as the same number: 0.0001, 1e-05.
std::string number_text(double value) {
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {text.data(), end};
}

bool has(const OptimizerSettings& settings, const Setting& setting) {
  return (setting.rules & of(settings.rule)) != 0;
}

std::string names_of(const OptimizerSettings& settings) {
  std::string names;
  for (const Setting& setting : kSettings) {
    if (!has(settings, setting)) continue;
    if (!names.empty()) names += ", ";
    names += setting.name;
  }
  return names;
}

const Setting& setting_named(const OptimizerSettings& settings, std::string_view name,
                             std::string_view where) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name && has(settings, setting)) return setting;
  }
  refuse_settings(where, std::string(aggregation::optimizer_rule_name(settings.rule)) +
                             " has no setting " + quoted(name) + "; expected " +
                             names_of(settings));
}

double parse_number(std::string_view text, std::string_view name, std::string_view where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse_settings(where, std::string(name) + "=" + quoted(text) + " is no number");
  }
  return value;
}

}  // namespace

OptimizerSettings default_settings(OptimizerRule rule) {
  OptimizerSettings settings;
  settings.rule = rule;
  if ((of(rule) & kMomentum) != 0) settings.momentum = 0.9;
  if ((of(rule) & kAdaptive) != 0) settings.learning_rate = 1e-3;
  if (rule == OptimizerRule::adamw) settings.weight_decay = 0.01;
  return settings;
}

void check_settings(const OptimizerSettings& settings, std::string_view where) {
  for (const Setting& setting : kSettings) {
    if (!has(settings, setting) || setting.fits(settings.*setting.value)) continue;
    refuse_settings(where, std::string(setting.name) + "=" + number_text(settings.*setting.value) +
                               "; expected " + std::string(setting.expected));
  }
}

OptimizerSettings parse_optimizer(std::string_view text, std::string_view where) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto rule = aggregation::parse_optimizer_rule(name);
  if (!rule) {
    refuse_settings(where, "there is no optimizer " + quoted(name) +
                               "; expected sgd, momentum, nesterov, adam or adamw, and its "
                               "settings: nesterov:lr=0.1,momentum=0.9");
  }
  OptimizerSettings settings = default_settings(*rule);
  if (name.size() != text.size()) {
    change_settings(settings, text.substr(name.size() + 1), where);
  }
  return settings;
}

void change_settings(OptimizerSettings& settings, std::string_view text, std::string_view where) {
  std::array<bool, kSettings.size()> given{};
  for (const std::string_view item : split(text, ',')) {
    const std::size_t equals = item.find('=');
    const Setting& setting = setting_named(settings, item.substr(0, equals), where);
    const std::string_view value = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    settings.*setting.value = parse_number(value, setting.name, where);
    if (std::exchange(given[static_cast<std::size_t>(&setting - kSettings.data())], true)) {
      refuse_settings(where, std::string(setting.name) + " is there twice; expected it once");
    }
  }
  check_settings(settings, where);
}

std::string optimizer_text(const OptimizerSettings& settings) {
  std::string text(aggregation::optimizer_rule_name(settings.rule));
  char separator = ':';
  for (const Setting& setting : kSettings) {
    if (!has(settings, setting) || std::isinf(settings.*setting.value)) continue;
    text += separator;
    text += setting.name;
    text += "=" + number_text(settings.*setting.value);
    separator = ',';
  }
  return text;
}

}  // namespace gradcube::control
