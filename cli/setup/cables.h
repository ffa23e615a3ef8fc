// Which port of which host hears which: what `gradcube setup` has found out, before it is known
// what the hosts are to each other.
//
// Plain values.
#ifndef GRADCUBE_CLI_SETUP_CABLES_H_
#define GRADCUBE_CLI_SETUP_CABLES_H_

#include <compare>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gradcube::cli {

// By their places in Cables.
struct HostPort {
  std::size_t host = 0;
  std::size_t port = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes this 0 for a pointer.
  auto operator<=>(const HostPort&) const = default;
};

struct PortFacts {
  std::string name;
  unsigned mtu = 0;
  bool is_up = true;
  bool has_carrier = true;  // somebody is at the other end
};

struct CabledHost {
  std::string name;
  std::vector<PortFacts> ports;
};

struct Cables {
  std::vector<CabledHost> hosts;
  std::set<std::pair<HostPort, HostPort>> heard;  // the first hears the second

  // "node1 eth1"
  std::string text(HostPort at) const {
    return hosts[at.host].name + " " + hosts[at.host].ports[at.port].name;
  }
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_SETUP_CABLES_H_
