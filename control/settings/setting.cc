#include "control/settings/setting.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {

namespace {

std::string shown(NumberUnit unit, std::uint64_t number) {
  return unit == NumberUnit::bytes ? format_size(number)
                                   : format_duration(static_cast<std::int64_t>(number));
}

}  // namespace

std::uint64_t parse_number(NumberUnit unit, std::uint64_t least, std::uint64_t most,
                           std::string_view text, std::string_view where) {
  if (unit == NumberUnit::none) return parse_integer(text, where, least, most);
  const bool zero_fits = unit == NumberUnit::nanoseconds;
  const std::uint64_t number =
      zero_fits ? static_cast<std::uint64_t>(parse_duration(text, where)) : parse_size(text, where);
  if ((number >= least && number <= most) || (zero_fits && number == 0)) return number;
  throw UsageError(fmt::format("{} {}: expected {}{}{}", where, quoted(text),
                               zero_fits ? "0 (none), or " : "", shown(unit, least),
                               most == kNoLimit ? " or more" : " to " + shown(unit, most)));
}

std::string number_text(NumberUnit unit, std::optional<std::uint64_t> number) {
  if (!number.has_value()) return "";
  return fmt::format("{}{}", *number, unit == NumberUnit::nanoseconds ? "ns" : "");
}

std::size_t parse_name(std::span<const std::string_view> names, std::string_view text,
                       std::string_view where) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw UsageError(fmt::format("{} {}: expected {} or {}", where, quoted(text),
                               fmt::join(names.first(names.size() - 1), ", "), names.back()));
}

std::string probability_text(double probability) { return fmt::format("{}", probability); }

}  // namespace gradcube::control
