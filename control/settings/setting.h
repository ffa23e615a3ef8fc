// A setting of a cluster as one row: its name, its section of the cluster file, whom it concerns,
// how its value is read and written, and its help. cluster_settings.h has the rows. From them
// follow the cluster file, the tool's options and their help, the settings as JSON, what daemons
// must have in common, and what links that are not emulated refuse.
//
// A setting has one textual form, which flags, the cluster file and JSON share. The forms below are
// those of numbers, of names, and of types that have their own.
//
// Pure functions; any thread.
#ifndef GRADCUBE_CONTROL_SETTINGS_SETTING_H_
#define GRADCUBE_CONTROL_SETTINGS_SETTING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "control/base/units.h"

namespace gradcube::control {

struct ClusterSettings;

// Whom a setting concerns.
enum class Reach : std::uint8_t {
  daemon,    // a daemon alone: another one may have another value. Where all must choose the same,
             // as for greeting, what it has chosen is in the fingerprint (DaemonChoices)
  cluster,   // all daemons of a cluster: it is part of their fingerprint
  emulated,  // emulated switches: links of another kind cannot do it
};

struct SettingForm {
  // Throws a UsageError that begins with `where` ("--rate") if it does not accept the text.
  void (*apply)(ClusterSettings& settings, std::string_view text, std::string_view where);
  // What apply() reads. Empty where nothing is given; nobody applies that.
  std::string (*text)(const ClusterSettings& settings);
};

struct Setting {
  std::string_view name;  // the flag's, without dashes, and the cluster file's key
  std::string_view section;
  Reach reach;
  SettingForm form;
  const char* help;
};

// --- Numbers.
enum class NumberUnit : std::uint8_t {
  none,         // a whole number
  bytes,        // "64K"
  nanoseconds,  // "50us"; 0 is always accepted
};
inline constexpr std::uint64_t kNoLimit = UINT64_MAX;

std::uint64_t parse_number(NumberUnit unit, std::uint64_t least, std::uint64_t most,
                           std::string_view text, std::string_view where);
std::string number_text(NumberUnit unit, std::optional<std::uint64_t> number);

template <typename Number>
void assign_number(Number& field, std::uint64_t number) {
  field = static_cast<Number>(number);
}
inline void assign_number(std::optional<std::uint64_t>& field, std::uint64_t number) {
  field = number;
}

// Of a field of any type of numbers, or of an optional one.
template <auto kField, NumberUnit kUnit, std::uint64_t kLeast = 0, std::uint64_t kMost = kNoLimit>
inline constexpr SettingForm kNumberForm{
    [](ClusterSettings& settings, std::string_view text, std::string_view where) {
      assign_number(settings.*kField, parse_number(kUnit, kLeast, kMost, text, where));
    },
    [](const ClusterSettings& settings) {
      return number_text(kUnit, static_cast<std::optional<std::uint64_t>>(settings.*kField));
    }};

// --- Names: of an enumeration whose values count them.
std::size_t parse_name(std::span<const std::string_view> names, std::string_view text,
                       std::string_view where);

template <auto kField, const auto& kNames>
inline constexpr SettingForm kNameForm{
    [](ClusterSettings& settings, std::string_view text, std::string_view where) {
      using Value = std::remove_reference_t<decltype(settings.*kField)>;
      settings.*kField = static_cast<Value>(parse_name(kNames, text, where));
    },
    [](const ClusterSettings& settings) {
      return std::string(kNames[static_cast<std::size_t>(settings.*kField)]);
    }};

// --- Types with functions that read and write them.
template <auto kField, auto kParse, auto kText>
inline constexpr SettingForm kValueForm{
    [](ClusterSettings& settings, std::string_view text, std::string_view where) {
      settings.*kField = kParse(text, where);
    },
    [](const ClusterSettings& settings) { return kText(settings.*kField); }};

std::string probability_text(double probability);
template <auto kField>
inline constexpr SettingForm kProbabilityForm =
    kValueForm<kField, parse_probability, probability_text>;

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_SETTING_H_
