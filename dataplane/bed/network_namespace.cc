#include "dataplane/bed/network_namespace.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace gradcube::dataplane {

namespace {

// The setting of interfaces that are still to come. The kernel has it unless it has no IPv6.
constexpr const char* kIpv6Switch = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

int switch_ipv6_off() noexcept {
  const int file = open(kIpv6Switch, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? 0 : errno;
  const int error = write(file, "1", 1) == 1 ? 0 : errno;
  close(file);
  return error;
}

}  // namespace

NamespaceFailure enter_new_network_namespace() noexcept {
  if (unshare(CLONE_NEWNET) != 0) return {.in_ipv6 = false, .error = errno};
  return {.in_ipv6 = true, .error = switch_ipv6_off()};
}

std::string failure_text(const NamespaceFailure& failure) {
  const char* reason = std::strerror(failure.error);
  if (failure.in_ipv6) {
    return fmt::format(
        "cannot switch IPv6 off in a network namespace: {}: {}; the veth fabric needs a writable "
        "/proc/sys, which a container may deny it",
        kIpv6Switch, reason);
  }
  if (failure.error == EPERM) {
    return "the veth fabric makes network namespaces and links, and this process may not: run it "
           "as root (with CAP_SYS_ADMIN and CAP_NET_ADMIN), or use --fabric embedded";
  }
  return fmt::format(
      "cannot make a network namespace: {}; does this kernel have CONFIG_NET_NS, and does "
      "/proc/sys/user/max_net_namespaces allow another?",
      reason);
}

}  // namespace gradcube::dataplane
