#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cli/checks/host_checks.h"
#include "cli/cluster/daemon_process.h"
#include "control/base/descriptor.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

bool succeeds(const std::string& command) {
  const int status = std::system(("timeout 10 " + command + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_there(const std::string& program) {
  return succeeds(fmt::format("sh -c 'PATH=$PATH:/usr/sbin:/sbin command -v {}'", program));
}

// In a network namespace that ends with it.
bool works_in_a_namespace(const std::string& commands) {
  return succeeds(fmt::format("unshare --net sh -c 'PATH=$PATH:/usr/sbin:/sbin; {}'", commands));
}

HostCheck check_packet_sockets() {
  const control::Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (socket.get() >= 0) {
    return {"packet sockets", Verdict::ok, "`gradcubed --server` can use this host's interfaces",
            ""};
  }
  return {"packet sockets", Verdict::warn,
          fmt::format("{}: `gradcubed --server` cannot use this host's interfaces",
                      std::strerror(errno)),
          fmt::format("run it as root, or: sudo {}", setcap_command())};
}

HostCheck check_test_bed() {
  const auto lacks = [](std::string finding, std::string remedy) {
    return HostCheck{"test bed", Verdict::warn, std::move(finding) + ": no `up --fabric veth`",
                     std::move(remedy)};
  };
  if (const std::string why = why_no_programs(); !why.empty()) {
    return {"test bed", Verdict::warn, "cannot look for ip and tc: " + why, ""};
  }
  if (!is_there("ip") || !is_there("tc")) {
    return lacks("the programs ip and tc are not installed", "sudo apt-get install -y iproute2");
  }
  if (!works_in_a_namespace("true")) {
    return lacks("this user cannot make network namespaces", "run it as root");
  }
  const std::string veth = "ip link add name a type veth peer name b";
  if (!works_in_a_namespace(veth)) {
    return lacks("the kernel makes no veths", "sudo modprobe veth");
  }
  if (!works_in_a_namespace("ip link add name a type bridge")) {
    return lacks("the kernel makes no bridges", "sudo modprobe bridge");
  }
  if (!works_in_a_namespace(veth +
                            " && tc qdisc add dev a root tbf rate 1mbit burst 10kb latency 1ms")) {
    return lacks("the kernel has no token buckets for --rate", "sudo modprobe sch_tbf");
  }
  return {"test bed", Verdict::ok, "namespaces, veths, bridges and token buckets work", ""};
}

}  // namespace

std::string why_no_programs() {
  FILE* const output = popen("timeout 10 sh -c 'sh -c true >/dev/null && true' 2>&1", "re");
  if (output == nullptr) return fmt::format("no program can be started: {}", std::strerror(errno));
  std::array<char, 200> said{};
  const bool any = std::fgets(said.data(), said.size(), output) != nullptr;
  const int status = pclose(output);
  if (status == 0) return "";
  const std::string_view line(said.data(), std::strcspn(said.data(), "\n"));
  return fmt::format(
      "no shell runs ({}): a limit such as ulimit -u, -n or -v may be too low",
      any ? control::printable(line) : fmt::format("exit code {}", WEXITSTATUS(status)));
}

std::vector<HostCheck> check_network() { return {check_packet_sockets(), check_test_bed()}; }

}  // namespace gradcube::cli
