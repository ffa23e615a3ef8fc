#include "control/model/model_topology.h"

#include <fmt/format.h>
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
    "bcube:n,k, torus:n,h, star:N or fattree:N, for example bcube:3,2";

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

}  // namespace

std::uint64_t ModelTopology::servers() const { return grid_servers(n, levels); }

std::string ModelTopology::spec() const {
  const KindName& known = kKinds[static_cast<std::size_t>(kind)];
  return known.has_levels() ? fmt::format("{}:{},{}", known.name, n, levels)
                            : fmt::format("{}:{}", known.name, n);
}

ModelTopology parse_model_topology(std::string_view spec, std::string_view where) {
  const KindName& kind = kind_of(spec, where);
  std::string_view numbers = spec.substr(kind.name.size());
  if (!numbers.empty()) numbers.remove_prefix(1);  // the colon
  const std::size_t comma = numbers.find(',');
  if ((comma != std::string_view::npos) != kind.has_levels()) {
    refuse(where, spec,
           fmt::format("{} takes {}", kind.name, kind.has_levels() ? "two numbers" : "one number"));
  }
  const auto place = [&](std::string_view number) {
    return fmt::format("{} {}: {}", where, quoted(spec), number);
  };
  ModelTopology topology{.kind = kind.kind};
  topology.n = parse_integer(numbers.substr(0, comma), place(kind.n), 2, kMostServers);
  if (kind.has_levels()) {
    topology.levels = static_cast<unsigned>(
        parse_integer(numbers.substr(comma + 1), place(kind.levels), 1, kMostLevels));
  }
  try {
    topology.servers();
  } catch (const std::invalid_argument& error) {
    refuse(where, spec, error.what());
  }
  return topology;
}

}  // namespace gradcube::control::model
