// A network of a test's own: a namespace in which the kernel has no interface but those that the
// test makes, and raw sockets to send and see any frame there.
//
// Of the test's thread, until it is destroyed. Needs CAP_SYS_ADMIN, CAP_NET_RAW and iproute2.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_NETWORK_NAMESPACE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_NETWORK_NAMESPACE_H_

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace gradcube::dataplane {

class NetworkNamespace {
 public:
  NetworkNamespace() : before_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (unshare(CLONE_NEWNET) != 0) refusal_ = std::strerror(errno);
  }
  ~NetworkNamespace() {
    // A test that cannot go back must not go on: the next one would find other interfaces.
    if (refusal_.empty() && setns(before_, CLONE_NEWNET) != 0) std::abort();
    close(before_);
  }
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  // Why there is none; empty if there is.
  const std::string& refusal() const { return refusal_; }

 private:
  int before_;
  std::string refusal_;
};

// As `ip link add a type veth peer b`. False if the program refuses or is not there.
inline bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

// Sees and sends every frame of one interface.
class RawSocket {
 public:
  explicit RawSocket(const std::string& interface)
      : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot bind a raw socket to " + interface);
    }
  }
  ~RawSocket() { close(socket_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void send(const std::string& frame) const {
    if (::send(socket_, frame.data(), frame.size(), 0) != static_cast<ssize_t>(frame.size())) {
      throw std::runtime_error(std::string("cannot send a raw frame: ") + std::strerror(errno));
    }
  }
  // Whether this frame comes before the time is over. Others are skipped.
  bool sees(const std::string& frame, std::chrono::milliseconds patience) const {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::string seen(65536, '\0');
    while (std::chrono::steady_clock::now() < end) {
      pollfd readable{socket_, POLLIN, 0};
      if (poll(&readable, 1, 1) <= 0) continue;
      const ssize_t bytes = recv(socket_, seen.data(), seen.size(), MSG_DONTWAIT);
      if (bytes > 0 &&
          frame.compare(0, frame.size(), seen, 0, static_cast<std::size_t>(bytes)) == 0)
        return true;
    }
    return false;
  }

 private:
  int socket_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_NETWORK_NAMESPACE_H_
