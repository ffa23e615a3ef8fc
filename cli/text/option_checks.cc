#include "cli/text/option_checks.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {

namespace {

// what: "a number"; range: "0..1"
CLI::Validator finite_in(double least, double most, const char* what, const std::string& range) {
  const auto check = [least, most, what, range](std::string& text) -> std::string {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec == std::errc() && result.ptr == end && value >= least && value <= most) return "";
    return fmt::format("{}: expected {} in {}", control::quoted(text), what, range);
  };
  return CLI::Validator(check, range);
}

std::string time_text(double seconds) {
  return seconds == 0 ? "0s" : control::format_duration(std::llround(seconds * 1e9));
}

}  // namespace

CLI::Validator seconds_in(double least, double most) {
  const std::string range = fmt::format("{}..{}", time_text(least), time_text(most));
  const auto plain = finite_in(least, most, "a time such as 500ms, or a number of seconds,", range);
  const auto check = [plain](std::string& text) -> std::string {
    const bool has_unit = text.ends_with('s');
    std::string seconds = text.substr(0, text.size() - (has_unit ? 1 : 0));
    if (has_unit && !plain(seconds).empty()) {  // not 7200s, which parse_duration() would not take
      try {
        seconds = fmt::format("{}", static_cast<double>(control::parse_duration(text, "")) / 1e9);
      } catch (const control::UsageError&) {  // it is refused below
      }
    }
    if (!plain(seconds).empty()) return plain(text);  // in the user's words
    text = seconds;
    return "";
  };
  return CLI::Validator(check, range);
}

CLI::Validator number_in(double least, double most) {
  return finite_in(least, most, "a number", fmt::format("{}..{}", least, most));
}

CLI::Validator whole_number_in(unsigned least, unsigned most) {
  const auto check = [least, most](std::string& text) -> std::string {
    unsigned value = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec == std::errc() && result.ptr == end && value >= least && value <= most) return "";
    return fmt::format("{}: expected a whole number in {}..{}", control::quoted(text), least, most);
  };
  return CLI::Validator(check, fmt::format("{}..{}", least, most));
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) -> std::string { return text.empty() ? "the value is empty" : ""; },
      "");
}

CLI::Option* add_number(CLI::App* command, const char* name, unsigned& value, unsigned least,
                        unsigned most, const std::string& help) {
  return command->add_option(name, value, help)
      ->capture_default_str()
      ->check(whole_number_in(least, most));
}

CLI::Validator job_name() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (shared::is_job_name(text)) return "";
        return fmt::format("{}: {}", control::quoted(text), shared::kJobNameRule);
      },
      "");
}

}  // namespace gradcube::cli
