#include "cli/text/option_checks.h"

#include <charconv>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {

namespace {

// what: "a number of seconds"
CLI::Validator finite_in(double least, double most, const char* what) {
  const auto check = [least, most, what](std::string& text) -> std::string {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec == std::errc() && result.ptr == end && value >= least && value <= most) return "";
    return fmt::format("{}: expected {} in {}..{}", control::quoted(text), what, least, most);
  };
  return CLI::Validator(check, fmt::format("{}..{}", least, most));
}

}  // namespace

CLI::Validator seconds_in(double least, double most) {
  const auto plain = finite_in(least, most, "a time such as 500ms, or a number of seconds,");
  const auto check = [plain](std::string& text) -> std::string {
    std::string seconds = text;
    if (text.ends_with('s')) {
      try {
        seconds = fmt::format("{}", static_cast<double>(control::parse_duration(text, "")) / 1e9);
      } catch (const control::UsageError&) {  // it is refused below
      }
    }
    if (!plain(seconds).empty()) return plain(text);  // in the user's words
    text = seconds;
    return "";
  };
  return CLI::Validator(check, fmt::format("{}..{}", least, most));
}

CLI::Validator number_in(double least, double most) { return finite_in(least, most, "a number"); }

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
