#include "control/model/model_topology.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/grid.h"

namespace gradcube::control::model {
namespace {

using Kind = ModelTopology::Kind;

constexpr unsigned kMostLevels = 16;
constexpr std::string_view kForms =
    "bcube:n,k, bcube with a list of radices, torus:n,h, star:N or fattree:N; for example "
    "bcube:3,2 or bcube:4x3x2";

struct KindName {
  Kind kind;
  std::string_view name;
  std::string_view n;       // what the first number is called
  std::string_view levels;  // and the second; empty: there is none

  bool has_levels() const { return !levels.empty(); }
};

// By the number of their kind.
constexpr KindName kKinds[] = {{Kind::bcube, "bcube", "n", "k"},
                               {Kind::torus, "torus", "n", "h"},
                               {Kind::star, "star", "N", ""},
                               {Kind::fattree, "fattree", "N", ""}};

[[noreturn]] void refuse(std::string_view where, std::string_view spec, std::string_view what) {
  throw UsageError(fmt::format("{} {}: {}; expected {}", where, quoted(spec), what, kForms));
}

const KindName& kind_of(std::string_view spec, std::string_view where) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  for (const KindName& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  refuse(where, spec, fmt::format("there is no topology {}", quoted(name)));
}

std::uint64_t parse_number(std::string_view text, std::string_view name, std::uint64_t lowest,
                           std::uint64_t highest, std::string_view spec, std::string_view where) {
  return parse_integer(text, fmt::format("{} {}: {}", where, quoted(spec), name), lowest, highest);
}

// "n,k", "n,h" or "N".
std::vector<std::uint64_t> equal_radices(const KindName& kind, std::string_view numbers,
                                         std::string_view spec, std::string_view where) {
  const std::size_t comma = numbers.find(',');
  if ((comma != std::string_view::npos) != kind.has_levels()) {
    refuse(where, spec,
           fmt::format("{} takes {}", kind.name, kind.has_levels() ? "two numbers" : "one number"));
  }
  const std::uint64_t n =
      parse_number(numbers.substr(0, comma), kind.n, 2, kMostServers, spec, where);
  if (!kind.has_levels()) return {n};
  return std::vector(
      parse_number(numbers.substr(comma + 1), kind.levels, 1, kMostLevels, spec, where), n);
}

// "4x3x2": the highest level first.
std::vector<std::uint64_t> listed_radices(std::string_view numbers, std::string_view spec,
                                          std::string_view where) {
  std::vector<std::uint64_t> radices;
  for (bool more = true; more;) {
    const std::string_view item = numbers.substr(0, numbers.find('x'));
    more = item.size() < numbers.size();
    numbers.remove_prefix(item.size() + (more ? 1 : 0));
    radices.push_back(parse_number(item, "a radix", 2, kMostServers, spec, where));
  }
  std::reverse(radices.begin(), radices.end());
  return radices;
}

}  // namespace

std::uint64_t ModelTopology::servers() const { return grid_servers(radices); }

bool ModelTopology::uniform() const {
  return std::all_of(radices.begin(), radices.end(),
                     [&](std::uint64_t n) { return n == radices.front(); });
}

std::string ModelTopology::spec() const {
  const KindName& known = kKinds[static_cast<std::size_t>(kind)];
  if (!known.has_levels()) return fmt::format("{}:{}", known.name, radices.front());
  if (uniform()) return fmt::format("{}:{},{}", known.name, radices.front(), levels());
  return fmt::format("{}:{}", known.name,
                     fmt::join(std::vector(radices.rbegin(), radices.rend()), "x"));
}

ModelTopology parse_model_topology(std::string_view spec, std::string_view where) {
  const KindName& kind = kind_of(spec, where);
  std::string_view numbers = spec.substr(kind.name.size());
  if (!numbers.empty()) numbers.remove_prefix(1);  // the colon
  ModelTopology topology{.kind = kind.kind, .radices = {}};
  if (kind.kind == Kind::bcube && numbers.find('x') != std::string_view::npos) {
    topology.radices = listed_radices(numbers, spec, where);
  } else {
    topology.radices = equal_radices(kind, numbers, spec, where);
  }
  try {
    topology.servers();
  } catch (const std::invalid_argument& error) {
    refuse(where, spec, error.what());
  }
  return topology;
}

}  // namespace gradcube::control::model
