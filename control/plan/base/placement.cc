#include "control/plan/base/placement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <string>
#include <utility>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"

namespace gradcube::control {
namespace {

constexpr std::uint16_t kNoIndex = UINT16_MAX;

// In a message.
constexpr std::size_t kMostNamed = 4;

// Ascending; throws a UsageError unless each is a server and named once.
std::vector<ServerId> checked_members(const Topology& topology, std::span<const ServerId> members,
                                      std::string_view where) {
  if (members.empty()) {
    throw UsageError(fmt::format("{}: no server is named; expected at least one", where));
  }
  std::vector<ServerId> sorted(members.begin(), members.end());
  std::sort(sorted.begin(), sorted.end());
  const AddressSpace& space = topology.space();
  if (sorted.back() >= space.addresses()) {
    throw UsageError(fmt::format("{}: there is no server number {}; {} has servers 0 to {}", where,
                                 sorted.back(), topology.spec(), space.addresses() - 1));
  }
  const auto absent = std::find_if(sorted.begin(), sorted.end(),
                                   [&](ServerId server) { return space.is_absent(server); });
  if (absent != sorted.end()) {
    throw UsageError(fmt::format("{}: server {} is absent: the cluster has none at this address",
                                 where, space.text(*absent)));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw UsageError(fmt::format("{}: server {} is named twice; expected each server once", where,
                                 space.text(*twice)));
  }
  return sorted;
}

// The servers of the grid that are no members, as text.
std::string missing_servers(const Placement& grid, const std::vector<ServerId>& members) {
  std::vector<std::string> named;
  std::size_t more = 0;
  for (Rank rank = 0; rank < grid.ranks(); ++rank) {
    const ServerId server = grid.server(rank);
    if (std::binary_search(members.begin(), members.end(), server)) continue;
    if (named.size() < kMostNamed) {
      named.push_back(grid.space().text(server));
    } else {
      ++more;
    }
  }
  const std::string text = fmt::format("{}", fmt::join(named, " "));
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

}  // namespace

Placement Placement::all(const Topology& topology) {
  if (!topology.space().is_whole()) return of(topology, topology.space().server_list(), "all");
  DigitsByLevel digits;
  const AddressSpace& grid = topology.grid_space();
  for (unsigned level = 0; level < grid.levels(); ++level) {
    digits.emplace_back(grid.radix(level));
    std::iota(digits.back().begin(), digits.back().end(), std::uint16_t{0});
  }
  return Placement(topology.space(), grid, std::move(digits));
}

Placement Placement::of(const Topology& topology, std::span<const ServerId> members,
                        std::string_view where) {
  const AddressSpace& space = topology.space();
  const AddressSpace& grid = topology.grid_space();
  std::vector<ServerId> sorted = checked_members(topology, members, where);
  if (!bcube::are_grid(grid, sorted)) return Placement(space, grid, std::move(sorted));
  return Placement(space, grid, digits_of(grid, sorted));
}

Placement Placement::surrounding_grid() const {
  return is_grid() ? *this : Placement(space_, grid_, digits_of(grid_, servers_));
}

std::string Placement::missing_text() const {
  const Placement grid = surrounding_grid();
  return fmt::format("{} {}", missing_servers(grid, servers_),
                     grid.ranks() - ranks_ == 1 ? "is" : "are");
}

Placement::DigitsByLevel Placement::digits_of(const AddressSpace& grid,
                                              std::span<const ServerId> members) {
  DigitsByLevel digits;
  for (unsigned level = 0; level < grid.levels(); ++level) {
    std::vector<bool> used(grid.radix(level), false);
    for (const ServerId server : members) used[grid.digit(server, level)] = true;
    std::vector<std::uint16_t>& here = digits.emplace_back();
    for (unsigned digit = 0; digit < grid.radix(level); ++digit) {
      if (used[digit]) here.push_back(static_cast<std::uint16_t>(digit));
    }
  }
  return digits;
}

Placement::Placement(const AddressSpace& space, const AddressSpace& grid, DigitsByLevel digits)
    : space_(space), grid_(grid), digits_(std::move(digits)) {
  for (unsigned level = 0; level < grid_.levels(); ++level) {
    const std::vector<std::uint16_t>& here = digits_[level];
    std::vector<std::uint16_t>& indices = digit_indices_.emplace_back(grid_.radix(level), kNoIndex);
    for (std::size_t i = 0; i < here.size(); ++i) indices[here[i]] = static_cast<std::uint16_t>(i);
    if (here.size() == 1) continue;
    const auto radix = static_cast<unsigned>(here.size());
    dimensions_.push_back({level, radix, ranks_});
    ranks_ *= radix;
  }
}

Placement::Placement(const AddressSpace& space, const AddressSpace& grid,
                     std::vector<ServerId> servers)
    : space_(space),
      grid_(grid),
      servers_(std::move(servers)),
      ranks_(static_cast<std::uint32_t>(servers_.size())) {}

Placement Placement::with_trainers(std::uint32_t per_server, std::string_view where) const {
  if (per_server < 1 || per_server > kMaxLocalTrainers) {
    throw UsageError(fmt::format("{}: {} trainers on each server: expected 1 to {}", where,
                                 per_server, kMaxLocalTrainers));
  }
  if (std::uint64_t{ranks_} * per_server > kMaxTrainers) {
    throw UsageError(
        fmt::format("{}: {} trainers on each of {} servers are {}: expected at most {}", where,
                    per_server, ranks_, std::uint64_t{ranks_} * per_server, kMaxTrainers));
  }
  Placement placement = *this;
  placement.trainers_per_server_ = per_server;
  return placement;
}

ServerId Placement::server(Rank rank) const {
  if (!is_grid()) return servers_[rank];
  ServerId server = 0;
  std::uint32_t rest = rank;
  for (unsigned level = 0; level < grid_.levels(); ++level) {
    const auto radix = static_cast<std::uint32_t>(digits_[level].size());
    server += digits_[level][rest % radix] * grid_.weight(level);
    rest /= radix;
  }
  return server;
}

std::optional<Rank> Placement::rank(ServerId server) const {
  if (!space_.contains(server)) return std::nullopt;
  if (!is_grid()) {
    const auto found = std::lower_bound(servers_.begin(), servers_.end(), server);
    if (found == servers_.end() || *found != server) return std::nullopt;
    return static_cast<Rank>(found - servers_.begin());
  }
  Rank rank = 0;
  std::uint32_t stride = 1;
  for (unsigned level = 0; level < grid_.levels(); ++level) {
    const std::uint16_t index = digit_indices_[level][grid_.digit(server, level)];
    if (index == kNoIndex) return std::nullopt;
    rank += index * stride;
    stride *= static_cast<std::uint32_t>(digits_[level].size());
  }
  return rank;
}

}  // namespace gradcube::control
