// Whether the servers that are here are cabled right, in words: what their ports hear and should
// not (links/wrong_greeting.h), and over which links full frames do not pass (links/full_frames.h).
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_CABLING_H_
#define GRADCUBE_DATAPLANE_DAEMON_CABLING_H_

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/daemon/engines/engine_at.h"
#include "dataplane/links/link_keeper.h"
#include "dataplane/links/wrong_greeting.h"

namespace gradcube::dataplane {

// A sentence about what this port of a server with these settings has heard. `wrong`
// is at fault.
std::string wrong_text(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port,
                       const protocol::SettingsDigest& settings, const WrongGreeting& wrong);

// About all that it has heard; empty if nothing is at fault.
std::string wrong_text(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port,
                       const protocol::SettingsDigest& settings,
                       std::span<const WrongGreeting> all);

// About links over which small frames pass and those of this MTU do not; empty without such links.
std::string length_text(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port,
                        unsigned mtu, std::span<const LossyLength> links);

struct WrongPort {
  std::string text;
  std::vector<bcube::ServerId> short_only;  // over whose links full frames do not pass
};

// By server and port: what is wrong now. Asks the pollers.
using WrongPorts = std::map<std::pair<bcube::ServerId, unsigned>, WrongPort>;
WrongPorts wrong_ports(const bcube::AddressSpace& space, const std::vector<EngineAt>& engines);

// Which of these sentences are for the log: each once in a minute, and a few in all, as anybody can
// send greetings.
class WrongPortsLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr auto kOnceIn = std::chrono::minutes(1);
  static constexpr std::size_t kMostAtOnce = 32;

  std::vector<std::string> news(const WrongPorts& ports, TimePoint now);

 private:
  std::map<std::string, TimePoint> logged_;  // less than a minute ago
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_CABLING_H_
