#include "cli/up/hosts_option.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <netdb.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <system_error>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using control::SetupError;
using control::UsageError;

bool is_ip(const std::string& text) {
  in6_addr any{};
  return inet_pton(AF_INET, text.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &any) == 1;
}

// "alice@node1" is a way to node1.
std::string without_user(const std::string& name) {
  return name.substr(name.find('@') + 1);  // npos + 1 is 0
}

std::string first_address_of(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &wanted, &found);
  if (error != 0) {
    throw SetupError(
        fmt::format("--hosts: {} is neither a file nor a host that is known here: {}; name its "
                    "address",
                    control::quoted(name), gai_strerror(error)));
  }
  // One of IPv4, where there is one: the addresses of all hosts have to be of one kind.
  const addrinfo* chosen = found;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      chosen = one;
      break;
    }
  }
  char text[NI_MAXHOST] = "";
  getnameinfo(chosen->ai_addr, chosen->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  if (std::string_view(text).starts_with("127.") || std::string_view(text) == "::1") {
    throw UsageError(fmt::format(
        "--hosts: {0} is {1} here, where other hosts cannot reach it; name its address, "
        "or in a file of hosts both: `{0} 10.0.0.1`",
        name, text));
  }
  return text;
}

// "node1", "10.0.0.1", "10.0.0.1:5000", "[fd00::1]:5000"
std::string address_of(const std::string& item) {
  const std::string host = without_user(item);
  const std::size_t colon = host.rfind(':');
  const bool has_port =
      host.starts_with('[') || (colon != std::string::npos && host.find(':') == colon);
  if (is_ip(host) || host.starts_with('[')) return host;
  const std::string name = has_port ? host.substr(0, colon) : host;
  return (is_ip(name) ? name : first_address_of(name)) + (has_port ? host.substr(colon) : "");
}

// A row of the server's addresses, by "node1" or "10.0.0.1,10.1.0.1".
std::string row_of(std::string_view text) {
  std::string row;
  for (const std::string_view item : control::words_of(text, ",")) {
    row += (row.empty() ? "" : ",") + address_of(std::string(item));
  }
  return row;
}

// How a launcher calls the host of this item: without a UDP port.
std::string name_of_item(std::string_view item) {
  if (item.starts_with('[')) return std::string(item.substr(1, item.find(']') - 1));
  const std::size_t colon = item.rfind(':');
  const bool has_port = colon != std::string::npos && item.find(':') == colon;
  return std::string(has_port ? item.substr(0, colon) : item);
}

void add_host(NamedHosts& hosts, std::string_view name, std::string_view addresses) {
  hosts.names.push_back(name_of_item(name));
  hosts.addresses += (hosts.addresses.empty() ? "" : " ") + row_of(addresses);
}

NamedHosts read_hosts_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw UsageError(
        fmt::format("--hosts {}: cannot read it: {}", control::quoted(path), std::strerror(errno)));
  }
  NamedHosts hosts;
  for (std::string line; std::getline(file, line);) {
    const std::string_view before_comment = std::string_view(line).substr(0, line.find('#'));
    std::vector<std::string_view> words = control::words_of(before_comment, " \t\r");
    // Of a host file of mpirun.
    std::erase_if(words, [](std::string_view word) {
      return word.starts_with("slots=") || word.starts_with("max_slots=");
    });
    if (words.empty()) continue;
    if (words.size() > 2) {
      throw UsageError(fmt::format(
          "--hosts {}: {}: expected a host in each line, and its addresses, joined by commas: "
          "`node1 10.0.0.1`, or `node1 10.0.0.1,10.1.0.1`",
          control::quoted(path), control::quoted(line)));
    }
    add_host(hosts, words.front(), words.back());
  }
  return hosts;
}

}  // namespace

NamedHosts read_hosts_option(const std::string& text) {
  NamedHosts hosts;
  std::error_code error;
  if (std::filesystem::is_regular_file(text, error)) {
    hosts = read_hosts_file(text);
  } else {
    // Commas alone are between hosts: no cluster has one server.
    const bool has_rows = text.find_first_of(" \t\n") != std::string::npos;
    if (!has_rows &&
        (text.starts_with(',') || text.ends_with(',') || text.find(",,") != std::string::npos)) {
      throw UsageError(fmt::format("--hosts {}: a host without a name; expected node1,node2,node3",
                                   control::quoted(text)));
    }
    for (const std::string_view row : control::words_of(text, has_rows ? " \t\n" : ",")) {
      add_host(hosts, row.substr(0, row.find(',')), row);
    }
  }
  if (hosts.names.size() == 1) {
    throw UsageError(
        fmt::format("--hosts {}: one host makes no cluster of several; expected more, "
                    "node1,node2,node3, or `gradcube up` without --hosts",
                    control::quoted(text)));
  }
  if (hosts.names.empty()) {
    throw UsageError(
        fmt::format("--hosts {}: there is no host in it; expected names or addresses, "
                    "node1,node2,node3, or a file with a line for each",
                    control::quoted(text)));
  }
  return hosts;
}

std::vector<std::string> host_names(const control::HostList& hosts) {
  std::vector<std::string> names;
  for (const control::HostRow& row : hosts) names.push_back(control::ip_text(row.front()));
  return names;
}

}  // namespace gradcube::cli
