// A cluster that `gradcube up` has started on several hosts: which they are, and how they are
// reached. It stands in the run directory, on each of them and where `up` was typed, so that later
// commands, typed on one of them, concern all.
//
// Any thread.
#ifndef GRADCUBE_CLI_CLUSTER_CLUSTER_HOSTS_H_
#define GRADCUBE_CLI_CLUSTER_CLUSTER_HOSTS_H_

#include <cstddef>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

struct ClusterHosts {
  std::string cluster;  // drawn for each `up`: tells its daemons from those of a later one
  // "ssh", "srun" or "mpirun", or a command with "{host}" in it.
  std::string launcher;
  std::string program;  // the path of gradcube on the other hosts
  std::vector<std::string>
      names{};  // of the hosts, in the order of their servers, for the launcher
  // With the addresses of all servers, a row for each of `names`.
  control::ClusterSettings settings;

  control::ServerId server(std::size_t host) const;
  std::vector<std::size_t> all() const;  // 0, 1, 2, ...
  // Of a server's first port, without its UDP port.
  std::string address(std::size_t host) const;
};

// Set for what one host is to do because a command concerns all of them.
inline constexpr const char* kThisHostAlone = "GRADCUBE_THIS_HOST";

// Where a host's name is to stand in a launcher's command.
inline constexpr std::string_view kHostMark = "{host}";
// The command of ssh, srun or mpirun; any other launcher is its own.
std::string launcher_command(const std::string& launcher);

// Refuses names and launchers that could be taken for something else. Throws a UsageError.
void validate(const ClusterHosts& hosts);

nlohmann::json hosts_json(const ClusterHosts& hosts);
// Throws a UsageError for what hosts_json() does not write.
ClusterHosts hosts_from_json(const nlohmann::json& json);

std::filesystem::path kept_hosts_file(const control::RunDirectory& directory);
void keep_cluster_hosts(const control::RunDirectory& directory, const ClusterHosts& hosts);
void forget_cluster_hosts(const control::RunDirectory& directory);
// Nothing where the cluster is on one host, or its daemons were started by hand. Throws a
// SetupError where the directory is not safe to take a command from, or the file is damaged.
std::optional<ClusterHosts> kept_cluster_hosts(const control::RunDirectory& directory);

// The same for a command that was typed; nothing where it is for this host alone.
std::optional<ClusterHosts> hosts_to_ask(const control::RunDirectory& directory);
bool is_for_this_host_alone();

// Thrown where a command concerns all hosts, and other ones do all of it: no failure.
struct NothingToDoHere : std::exception {
  const char* what() const noexcept override { return "none of the servers is on this host"; }
};
// That, or a SetupError: a command finds none of its servers on this host.
[[noreturn]] void throw_none_is_here();

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_CLUSTER_HOSTS_H_
