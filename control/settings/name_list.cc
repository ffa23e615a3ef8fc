#include "control/settings/name_list.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

constexpr std::size_t kLongestUserName = 256;

bool is_user_name(std::string_view name) {
  const auto is_part = [](char c) { return c > ' ' && c != 0x7f && c != ':' && c != '"'; };
  return !name.empty() && name.size() <= kLongestUserName &&
         std::all_of(name.begin(), name.end(), is_part);
}

}  // namespace

NameList parse_names(std::string_view text, std::string_view where) {
  NameList names;
  for (const std::string_view name : split(text, ',')) {
    if (!is_user_name(name)) {
      throw UsageError(fmt::format(
          "{}: {} is no name; expected names or numbers with commas between them, for example "
          "alice,1001",
          where, quoted(name)));
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw UsageError(fmt::format("{}: {} is named twice", where, quoted(name)));
    }
    names.emplace_back(name);
  }
  return names;
}

std::string names_text(const NameList& names) { return fmt::format("{}", fmt::join(names, ",")); }

}  // namespace gradcube::control
