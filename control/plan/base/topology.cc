#include "control/plan/base/topology.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::control {
namespace {

constexpr std::string_view kTree = "tree";

struct Notation {
  std::string_view name;
  unsigned numbers;  // 0: a list of them
  std::string_view parameters;
  std::string_view form;  // what is accepted, and an example
};

constexpr Notation kNotations[] = {
    {"bcube", 2, "n and k",
     "bcube:n,k with radix n in 2..256 and k levels in 1..7, or the levels' radices, the highest "
     "level first; for example bcube:3,2 or bcube:4x3x2"},
    {"star", 1, "N", "star:N with N servers in 2..256, for example star:9"},
    {"torus", 2, "n and h",
     "torus:n,h with rings of n in 3..256 servers and h dimensions in 1..7, for example "
     "torus:4,2"},
    {kTree, 0, "",
     "tree with 2 to 7 radices, the servers of a lowest switch first, for 256 servers at most; for "
     "example tree:4x2, two switches with four servers each"},
};

constexpr std::string_view kForms =
    "bcube:n,k, bcube with a list of radices, star:N, torus:n,h or tree with a list of radices; "
    "for example bcube:3,2, bcube:4x3x2, torus:4,2 or tree:4x2";

[[noreturn]] void refuse(std::string_view where, std::string_view spec, std::string_view what,
                         std::string_view accepted) {
  throw UsageError(fmt::format("{} {}: {}; expected {}", where, quoted(spec), what, accepted));
}

const Notation& notation_of(std::string_view spec, std::string_view where) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  for (const Notation& notation : kNotations) {
    if (notation.name == name) return notation;
  }
  refuse(where, spec, fmt::format("there is no topology {}", quoted(name)), kForms);
}

// What stands behind the colon.
std::vector<unsigned> numbers_of(const Notation& notation, char separator, std::string_view spec,
                                 std::string_view where) {
  const std::string_view text = spec.substr(std::min(notation.name.size() + 1, spec.size()));
  std::vector<unsigned> values;
  if (text.empty()) return values;
  for (const std::string_view item : split(text, separator)) {
    unsigned value = 0;
    const char* const end = item.data() + item.size();
    const auto result = std::from_chars(item.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) {
      refuse(where, spec, fmt::format("{} is not a whole number in range", quoted(item)),
             notation.form);
    }
    values.push_back(value);
  }
  return values;
}

// The radix of each level, from level 0 up, of "n,k", "n,h" or "N".
std::vector<unsigned> equal_radices(const Notation& notation, std::string_view spec,
                                    std::string_view where) {
  const std::vector<unsigned> values = numbers_of(notation, ',', spec, where);
  if (values.size() != notation.numbers) {
    refuse(where, spec,
           fmt::format("{} takes {} ({}), not {}", notation.name,
                       notation.numbers == 1 ? "one number" : "two numbers", notation.parameters,
                       values.size()),
           notation.form);
  }
  const auto require = [&](char parameter, unsigned value, unsigned least, unsigned most) {
    if (value >= least && value <= most) return;
    refuse(where, spec, fmt::format("{} is {}, but it is {}..{}", parameter, value, least, most),
           notation.form);
  };
  const unsigned count = values.size() > 1 ? values[1] : 1;
  require(notation.parameters.back(), count, 1, kMaxDimensions);
  require(notation.parameters.front(), values[0], notation.name == "torus" ? bcube::kLeastRing : 2,
          bcube::kMaxRadix);
  return std::vector<unsigned>(count, values[0]);
}

// The same of a list, "4x3x2": the highest level first, but of a tree the lowest.
std::vector<unsigned> listed_radices(const Notation& notation, std::string_view spec,
                                     std::string_view where) {
  std::vector<unsigned> radices = numbers_of(notation, 'x', spec, where);
  if (notation.name != kTree) std::reverse(radices.begin(), radices.end());
  if (notation.name == kTree && radices.size() < 2) {
    refuse(where, spec, fmt::format("it lists {} levels", radices.size()), notation.form);
  }
  return radices;
}

std::vector<unsigned> radices_of(const std::string& kind,
                                 const std::vector<Dimension>& dimensions) {
  if (dimensions.size() > kMaxDimensions) {
    throw std::invalid_argument(
        fmt::format("a {} has 1..{} dimensions, not {}", kind, kMaxDimensions, dimensions.size()));
  }
  std::vector<unsigned> radices;
  for (const Dimension& dimension : dimensions) radices.push_back(dimension.radix);
  return radices;
}

// Of the servers' addresses: a tree's is a star's.
std::vector<unsigned> radices_of_addresses(const std::string& kind,
                                           const std::vector<Dimension>& dimensions) {
  const std::vector<unsigned> radices = radices_of(kind, dimensions);
  if (dimensions.empty() || dimensions.back().link != Link::uplink) return radices;
  std::uint64_t servers = 1;
  for (const unsigned radix : radices) {
    servers *= radix;
    if (servers <= bcube::kMaxRadix) continue;
    throw std::invalid_argument(fmt::format("a {} has at most {} servers", kind, bcube::kMaxRadix));
  }
  return {static_cast<unsigned>(servers)};
}

// All are joined by switches, or all by cables.
bcube::Joint joint_of(const std::string& kind, const std::vector<Dimension>& dimensions) {
  const auto adjacent = std::count_if(dimensions.begin(), dimensions.end(),
                                      [](const Dimension& d) { return d.link == Link::adjacent; });
  if (adjacent == 0) return bcube::Joint::switches;
  if (static_cast<std::size_t>(adjacent) == dimensions.size()) return bcube::Joint::cables;
  throw std::invalid_argument(fmt::format(
      "a {} has switches at some levels and cables at others; expected one of them", kind));
}

// Throws std::invalid_argument unless hops over servers that are there join all of them.
void require_joined(const AddressSpace& space) {
  const std::vector<ServerId> servers = space.server_list();
  std::vector<ServerId> reached = {servers.front()};
  std::vector<bool> seen(space.addresses());
  seen[servers.front()] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const ServerId next : servers) {
      if (seen[next] || !bcube::are_neighbours(space, reached[i], next)) continue;
      seen[next] = true;
      reached.push_back(next);
    }
  }
  const auto cut_off =
      std::find_if(servers.begin(), servers.end(), [&](ServerId server) { return !seen[server]; });
  if (cut_off == servers.end()) return;
  throw std::invalid_argument(fmt::format(
      "without these, no servers that are there join {} and {}; expected a cluster in one piece",
      space.text(servers.front()), space.text(*cut_off)));
}

}  // namespace

Topology::Topology(std::string kind, std::vector<Dimension> dimensions)
    : kind_(std::move(kind)),
      dimensions_(std::move(dimensions)),
      space_(radices_of_addresses(kind_, dimensions_), joint_of(kind_, dimensions_)),
      grid_(radices_of(kind_, dimensions_), joint_of(kind_, dimensions_)) {}

unsigned Topology::ports() const {
  unsigned count = 0;
  for (const Dimension& dimension : dimensions_) {
    if (dimension.ports() > 0) count = std::max(count, dimension.port + dimension.ports());
  }
  return count;
}

bool Topology::uniform() const {
  return std::all_of(dimensions_.begin(), dimensions_.end(),
                     [&](const Dimension& d) { return d.radix == dimensions_.front().radix; });
}

bool Topology::has_rates() const {
  const auto is_limited = [](std::uint64_t rate_bps) { return rate_bps != 0; };
  return std::ranges::any_of(dimensions_, is_limited, &Dimension::rate_bps) ||
         std::ranges::any_of(own_rates_, is_limited);
}

std::uint32_t Topology::sharers(unsigned level) const {
  return dimensions_[level].link == Link::uplink ? grid_.weight(level) : 1;
}

std::uint64_t Topology::path_bps(unsigned link_level) const {
  std::uint64_t least = dimensions_[link_level].rate_bps;
  for (unsigned below = 0; is_tree() && below < link_level; ++below) {
    least = std::min(least, dimensions_[below].rate_bps);
  }
  return least;
}

std::string Topology::spec() const {
  if (is_tree()) return fmt::format("{}:{}", kind_, fmt::join(radices_of(kind_, dimensions_), "x"));
  if (kind_ == "star") return fmt::format("star:{}", space_.addresses());
  if (uniform()) return fmt::format("{}:{},{}", kind_, dimensions_.front().radix, levels());
  std::vector<unsigned> radices = radices_of(kind_, dimensions_);
  std::reverse(radices.begin(), radices.end());
  return fmt::format("{}:{}", kind_, fmt::join(radices, "x"));
}

Topology Topology::with_rates(const std::vector<std::uint64_t>& rates_bps) const {
  Topology rated = *this;
  for (unsigned level = 0; level < link_levels(); ++level) {
    rated.dimensions_[level].rate_bps = rates_bps.at(level);
  }
  return rated;
}

Topology Topology::with_own_ports(const std::vector<PortGroup>& servers) const {
  std::vector<unsigned> counts(space_.addresses(), 1);
  Topology owning = *this;
  owning.own_rates_.clear();
  if (!servers.empty()) owning.own_rates_.resize(space_.addresses());
  for (const PortGroup& own : servers) {
    if (!space_.contains(own.server)) {
      throw std::invalid_argument(fmt::format("there is no server {} in {}", own.server, spec()));
    }
    if (own.ports > 1 && (space_.levels() > 1 || space_.cabled() || is_tree())) {
      throw std::invalid_argument(
          fmt::format("server {} cannot have {} ports in {}, where a server has one to each switch "
                      "or cable; several ports on a switch are for a star",
                      own.server, own.ports, spec()));
    }
    counts[own.server] = own.ports;
    owning.own_rates_[own.server] = own.rate_bps;
  }
  owning.space_ = space_.with_ports(counts);
  return owning;
}

Topology Topology::with_mtu(unsigned mtu) const {
  Topology same = *this;
  same.mtu_ = mtu;
  return same;
}

Topology Topology::with_lcores(unsigned lcores) const {
  Topology same = *this;
  same.lcores_ = std::max(lcores, 1U);
  return same;
}

Topology Topology::without(const std::vector<ServerId>& absent) const {
  Topology rest = *this;
  rest.space_ = space_.without(absent);
  rest.grid_ = grid_.without(absent);
  if (rest.space_.is_whole()) return rest;
  if (space_.addresses() > kMaxPartialAddresses) {
    throw std::invalid_argument(
        fmt::format("{} has {} addresses; servers may be absent of topologies with at most {}",
                    spec(), space_.addresses(), kMaxPartialAddresses));
  }
  require_joined(rest.space_);
  return rest;
}

std::string Topology::absent_text() const { return addresses_text(space_, space_.absent_list()); }

Topology parse_topology(std::string_view spec, std::string_view where) {
  const Notation& notation = notation_of(spec, where);
  const bool tree = notation.name == kTree;
  const bool listed =
      tree || (notation.name == "bcube" && spec.find('x') != std::string_view::npos);
  const std::vector<unsigned> radices =
      listed ? listed_radices(notation, spec, where) : equal_radices(notation, spec, where);
  const bool torus = notation.name == "torus";
  std::vector<Dimension> dimensions;
  for (const unsigned radix : radices) {
    const auto i = static_cast<unsigned>(dimensions.size());
    const Link link = torus ? Link::adjacent : tree && i > 0 ? Link::uplink : Link::switched;
    dimensions.push_back({radix, tree ? 0 : torus ? 2 * i : i, 0, link});
  }
  try {
    return Topology(std::string(notation.name), std::move(dimensions));
  } catch (const std::invalid_argument& error) {
    refuse(where, spec, error.what(), notation.form);
  }
}

Topology parse_absent(const Topology& topology, std::string_view text, std::string_view where) {
  const Topology whole = topology.whole();
  const std::vector<ServerId> absent = parse_servers(whole, text, where);
  try {
    return whole.without(absent);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {} (topology {})", where, error.what(), topology.spec()));
  }
}

std::string servers_text(const Topology& topology) {
  const std::uint32_t servers = topology.servers();
  const std::string text = counted(servers, "server");
  const std::uint32_t absent = topology.space().addresses() - servers;
  return absent == 0 ? text : fmt::format("{}, {} absent", text, absent);
}

ServerId parse_server(const Topology& topology, std::string_view text, std::string_view where) {
  try {
    // Parsed as it is shown: a text that had to be cut or escaped is no address either way.
    return topology.space().parse(printable(text));
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{} {} (topology {})", where, error.what(), topology.spec()));
  }
}

std::vector<ServerId> parse_servers(const Topology& topology, std::string_view text,
                                    std::string_view where) {
  std::vector<ServerId> servers;
  for (const std::string_view address : words_of(text, " ;")) {
    servers.push_back(parse_server(topology, address, where));
  }
  return servers;
}

std::string addresses_text(const AddressSpace& space, const std::vector<ServerId>& servers) {
  std::string list;
  for (const ServerId server : servers) {
    const std::string address = space.text(server);  // "[2,1]"
    list += (list.empty() ? "" : " ") + address.substr(1, address.size() - 2);
  }
  return list;
}

nlohmann::ordered_json topology_json(const Topology& topology) {
  nlohmann::ordered_json json;
  json["spec"] = topology.spec();
  json["kind"] = topology.kind();
  if (topology.is_tree()) {
    for (const Dimension& level : topology.dimensions()) json["radices"].push_back(level.radix);
  } else if (topology.uniform()) {
    json["n"] = topology.space().radix(0);
  } else {
    for (unsigned level = topology.levels(); level-- > 0;) {
      json["radices"].push_back(topology.space().radix(level));
    }
  }
  json[topology.kind() == "torus" ? "h" : "k"] = topology.link_levels();
  json["servers"] = topology.servers();
  const std::vector<ServerId> absent = topology.space().absent_list();
  if (!absent.empty()) json["absent"] = addresses_json(topology.space(), absent);
  return json;
}

nlohmann::ordered_json address_json(const AddressSpace& space, ServerId server) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (unsigned level = space.levels(); level-- > 0;) json.push_back(space.digit(server, level));
  return json;
}

nlohmann::ordered_json addresses_json(const AddressSpace& space,
                                      const std::vector<ServerId>& servers) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ServerId server : servers) json.push_back(address_json(space, server));
  return json;
}

}  // namespace gradcube::control
