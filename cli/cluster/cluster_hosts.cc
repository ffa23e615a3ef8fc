#include "cli/cluster/cluster_hosts.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <system_error>
#include <unistd.h>

#include "cli/text/json_fields.h"
#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/read_text.h"
#include "control/base/system_error.h"
#include "control/settings/host_list.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using control::UsageError;

constexpr std::string_view kHostsFile = "hosts.json";
constexpr std::size_t kMostFileBytes = 4 << 20;
// The launchers that are known by a name.
constexpr std::pair<std::string_view, std::string_view> kLaunchers[] = {
    // No prompt that nobody sees, and no wait for a host that is gone.
    {"ssh",
     "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 "
     "{host}"},
    // In a job's allocation, beside its other steps.
    {"srun", "srun --overlap --nodes=1 --ntasks=1 --cpu-bind=none --nodelist={host}"},
    // Without its boxes of words, which hide what ssh says; env ends as a shell does where there is
    // no such program.
    {"mpirun", "mpirun --quiet -n 1 --bind-to none --host {host} env"}};

// What no shell on the way, and no launcher, takes for something else.
bool is_plain(std::string_view word, std::string marks) {
  marks += "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return !word.empty() && !word.starts_with('-') &&
         word.find_first_not_of(marks) == std::string_view::npos;
}

void validate_launcher(const std::string& launcher) {
  if (launcher_command(launcher).find(kHostMark) != std::string::npos) return;
  throw UsageError(
      fmt::format("--launcher {}: expected ssh, srun, mpirun, or a command with {{host}} where the "
                  "host's name is to stand: 'ssh -p 2222 {{host}}'",
                  control::quoted(launcher)));
}

}  // namespace

control::ServerId ClusterHosts::server(std::size_t host) const {
  return settings.topology.space().server_list().at(host);
}

std::vector<std::size_t> ClusterHosts::all() const {
  std::vector<std::size_t> hosts(names.size());
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

std::string ClusterHosts::address(std::size_t host) const {
  return control::ip_text(
      control::host_of_port(settings.topology, settings.hosts, server(host), 0));
}

std::string launcher_command(const std::string& launcher) {
  for (const auto& [name, command] : kLaunchers) {
    if (name == launcher) return std::string(command);
  }
  return launcher;
}

void validate(const ClusterHosts& hosts) {
  validate_launcher(hosts.launcher);
  if (!is_plain(hosts.program, "/._-+")) {
    throw UsageError(fmt::format(
        "gradcube is started on the hosts as {}: expected a path of letters, digits and "
        "the characters / . _ - +; --program names one, or a link to it",
        control::quoted(hosts.program)));
  }
  std::set<std::string> seen;
  for (const std::string& name : hosts.names) {
    if (!is_plain(name, "._-@:%")) {
      throw UsageError(fmt::format("--hosts: {} is no name of a host", control::quoted(name)));
    }
    if (!seen.insert(name).second) {
      throw UsageError(
          fmt::format("--hosts: {} is there twice; expected a host for each server", name));
    }
  }
  if (hosts.names.size() != hosts.settings.hosts.size()) {
    throw UsageError(fmt::format("--hosts: there are {} hosts, and the addresses of {} servers",
                                 hosts.names.size(), hosts.settings.hosts.size()));
  }
}

nlohmann::json hosts_json(const ClusterHosts& hosts) {
  return {{"cluster", hosts.cluster},
          {"launcher", hosts.launcher},
          {"program", hosts.program},
          {"names", hosts.names},
          {"settings", nlohmann::json(control::to_json(hosts.settings))}};
}

ClusterHosts hosts_from_json(const nlohmann::json& json) {
  ClusterHosts hosts{.cluster = text_field(json, "cluster").value_or(""),
                     .launcher = text_field(json, "launcher").value_or(""),
                     .program = text_field(json, "program").value_or(""),
                     .settings = control::settings_from_json(field(json, "settings"))};
  for (const nlohmann::json& name : items(json, "names")) {
    hosts.names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  validate(hosts);
  return hosts;
}

std::filesystem::path kept_hosts_file(const RunDirectory& directory) {
  return directory.path() / kHostsFile;
}

void keep_cluster_hosts(const RunDirectory& directory, const ClusterHosts& hosts) {
  // As a whole.
  const std::string path = kept_hosts_file(directory).string();
  std::string temporary = path + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) throw control::system_error("cannot write {}", path);
  const std::string text = json_text(hosts_json(hosts)) + "\n";
  const bool written =
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if ((close(descriptor) != 0) || !written || rename(temporary.c_str(), path.c_str()) != 0) {
    const auto refusal = control::system_error("cannot write {}", path);
    unlink(temporary.c_str());
    throw refusal;
  }
}

void forget_cluster_hosts(const RunDirectory& directory) {
  std::error_code ignored;
  std::filesystem::remove(kept_hosts_file(directory), ignored);
}

std::optional<ClusterHosts> kept_cluster_hosts(const RunDirectory& directory) {
  std::error_code error;
  if (!std::filesystem::exists(kept_hosts_file(directory), error)) return std::nullopt;
  directory.check();  // what stands there is run as a command
  const std::filesystem::path path = kept_hosts_file(directory);
  const control::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::optional<std::string> text = control::read_text(file, kMostFileBytes);
  if (!text) throw control::system_error("cannot read {}", path.string());
  try {
    return hosts_from_json(text->size() > kMostFileBytes
                               ? nlohmann::json()
                               : nlohmann::json::parse(*text, nullptr, false));
  } catch (const std::exception& wrong) {
    throw SetupError(
        fmt::format("{} does not say on which hosts the cluster is: {}; remove it, and end what "
                    "runs by {}=1 gradcube down on each host",
                    path.string(), wrong.what(), kThisHostAlone));
  }
}

std::optional<ClusterHosts> hosts_to_ask(const RunDirectory& directory) {
  if (is_for_this_host_alone()) return std::nullopt;
  return kept_cluster_hosts(directory);
}

bool is_for_this_host_alone() { return std::getenv(kThisHostAlone) != nullptr; }

void throw_none_is_here() {
  const NothingToDoHere nothing;
  if (is_for_this_host_alone()) throw nothing;
  throw SetupError(nothing.what());
}

}  // namespace gradcube::cli
