// The rates of a cluster's links: none, so that links are as fast as the CPU goes; one for all
// links; or one for each level. Of a tree, whose levels are those of its links, one rate is that of
// the servers' own links, and the uplinks' follow by with_uplinks(). As text "1gbit", or
// "level0=10gbit,level1=1gbit"; as JSON null, a number of bits per second, or an array of numbers,
// level 0 first.
//
// Beside these, servers may have ports of their own: with another rate, and on a star several.
// "1gbit,server8=4x10gbit" are four ports of 10 Gbit/s each. As JSON, apart from the rates, they
// are a list of {"server":8,"ports":4,"rate_bps":10000000000}.
//
// A level without a rate beside levels that have one is refused: without a rate there is no credit,
// and frames wait at their senders. A flow would meet both as soon as a relay or a detour leads it
// over two levels.
//
// An immutable value.
#ifndef GRADCUBE_CONTROL_SETTINGS_LINK_RATES_H_
#define GRADCUBE_CONTROL_SETTINGS_LINK_RATES_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/topology.h"

namespace gradcube::control {

class LinkRates {
 public:
  LinkRates() = default;  // none
  explicit LinkRates(std::uint64_t of_all) : rates_{of_all} {}
  // At least one; 0: the level's is missing, which validate() will not accept.
  explicit LinkRates(std::vector<std::uint64_t> by_level)
      : by_level_(true), rates_(std::move(by_level)) {}

  bool limited() const { return !rates_.empty(); }
  // In bits per second; 0: none is given.
  std::uint64_t of(unsigned level) const;
  // Of each port of a server to the level.
  std::uint64_t of_port(ServerId server, unsigned level) const;
  // By ascending server.
  const std::vector<PortGroup>& own_ports() const { return own_ports_; }
  LinkRates with_own_ports(std::vector<PortGroup> own_ports) const;
  std::uint64_t slowest() const;

  // On a tree and with one rate: an uplink has what the links below its switch have together,
  // divided by the oversubscription, from 1 (none: 1). Else the same rates, and a UsageError if
  // there is an oversubscription.
  LinkRates with_uplinks(const Topology& topology,
                         std::optional<std::uint64_t> oversubscription) const;

  // The same topology with these rates on its dimensions, and the servers' own ports.
  Topology on(const Topology& topology) const;

  // Throws a UsageError unless each level of the topology has a rate that links can have, or none
  // has, no other level is named, and the topology can have the servers' own ports.
  void validate(const Topology& topology) const;

  bool operator==(const LinkRates&) const = default;

 private:
  friend nlohmann::ordered_json to_json(const LinkRates& rates);
  friend std::string rates_text(const LinkRates& rates);

  bool by_level_ = false;
  std::vector<std::uint64_t> rates_;  // one of all links, or by level
  std::vector<PortGroup> own_ports_;
};

// Throws a UsageError, whose message begins with `where`: "--rate".
LinkRates parse_link_rates(std::string_view text, std::string_view where);

inline constexpr std::uint64_t kMostOversubscription = 256;

// What parse_link_rates() reads. Empty if there are none.
std::string rates_text(const LinkRates& rates);

// from_json throws a UsageError on what to_json could not have written.
nlohmann::ordered_json to_json(const LinkRates& rates);
LinkRates link_rates_from_json(const nlohmann::ordered_json& json, std::string_view where);
nlohmann::ordered_json own_ports_json(const std::vector<PortGroup>& own_ports);
std::vector<PortGroup> own_ports_from_json(const nlohmann::ordered_json& json,
                                           std::string_view where);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_LINK_RATES_H_
