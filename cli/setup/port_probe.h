// What `gradcube setup` does on a host: sends greetings out of each port, and tells which it has
// heard.
//
// A greeting is an Ethernet frame to all, of the type that IEEE 802 leaves for local experiments
// (0x88b5): "gradcube", then in network byte order 8 bytes that name this setup, and 2 bytes each
// of host and port. No daemon sends or takes such frames, and no interface is changed.
//
// Owns a packet socket on each port that is up, for which the process needs CAP_NET_RAW. One
// thread; no call waits. Errors are control::SetupError.
#ifndef GRADCUBE_CLI_SETUP_PORT_PROBE_H_
#define GRADCUBE_CLI_SETUP_PORT_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/setup/cables.h"
#include "control/base/descriptor.h"

namespace gradcube::cli {

class PortProbe {
 public:
  // On these interfaces; if none is named, on every Ethernet interface that is free for it: of
  // those the host has, the ones without an IP address beside that of their link (fe80::).
  explicit PortProbe(const std::vector<std::string>& names);

  // As they are now: a port gets its carrier a while after it is up.
  const std::vector<PortFacts>& look();

  // Once, out of each.
  void greet(std::uint64_t setup, std::size_t host);

  struct Heard {
    std::size_t port = 0;  // of this host
    HostPort from;         // whatever the frame says
  };
  // Since the last call.
  std::vector<Heard> take_heard(std::uint64_t setup);

 private:
  struct Socket {
    std::size_t port;
    int interface;
    control::Descriptor descriptor;
  };

  void listen(std::size_t port);

  std::vector<PortFacts> ports_;
  std::vector<Socket> sockets_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_SETUP_PORT_PROBE_H_
