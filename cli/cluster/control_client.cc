#include "cli/cluster/control_client.h"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/comes_true.h"
#include "cli/text/json_fields.h"
#include "control/base/errors.h"
#include "control/settings/ask_daemons.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using nlohmann::json;

// A daemon gives 64 others at a time two seconds, and a cluster has 65,536 servers at most.
constexpr auto kAllPatience = std::chrono::minutes(40);
constexpr auto kAllPause = std::chrono::milliseconds(50);
constexpr const char* kNoStatus =
    "the daemon's answer has no status: is it another version of gradcubed?";

// The user may look at the directory, but not use the socket. Whether the daemon lives cannot be
// seen: its lock is closed, too.
std::string closed_message(const RunDirectory& directory) {
  struct stat status {};
  stat(directory.path().c_str(), &status);
  return fmt::format(
      "the cluster in {} serves its own user, {}, alone, and not user {}: set GRADCUBE_RUN to a "
      "directory of your own, or ask user {} for a daemon whose allow-users names you",
      directory.path().string(), status.st_uid, geteuid(), status.st_uid);
}

}  // namespace

std::string no_cluster_message(const RunDirectory& directory) {
  if (is_for_this_host_alone()) {
    return fmt::format(
        "no daemon runs in {} of this host: `gradcube down` ends those of other hosts, then "
        "`gradcube up` starts all",
        directory.path().string());
  }
  std::vector<std::string> parts;
  for (const RunDirectory& part : directory.living_parts()) {
    const auto daemon = part.living_daemon();
    parts.push_back(
        fmt::format("{} (pid {})", part.path().filename().string(), daemon ? daemon->pid : 0));
  }
  if (!parts.empty()) {
    return fmt::format(
        "no cluster runs in {}, but daemons of servers or switches do: {}; `gradcube down` ends "
        "them",
        directory.path().string(), fmt::join(parts, ", "));
  }
  if (has_leftovers(directory)) {
    return fmt::format(
        "no cluster runs in {}: its daemon has ended, and not by `gradcube down`; its log is {}. "
        "`gradcube down` removes what it has left, `gradcube up` starts a cluster",
        directory.path().string(), directory.log_file().string());
  }
  return fmt::format("no cluster runs in {}: start one with `gradcube up --topology bcube:3,2`",
                     directory.path().string());
}

bool has_leftovers(const RunDirectory& directory) {
  return directory.is_own() && !directory.living_daemon() && !directory.stale_sockets().empty();
}

bool runs_here(const RunDirectory& directory) {
  directory.require_open();
  std::error_code ignored;
  return directory.is_own() ? directory.living_daemon().has_value()
                            : std::filesystem::exists(directory.control_socket(), ignored);
}

void require_cluster(const RunDirectory& directory) {
  directory.require_open();
  if (!directory.exists()) throw SetupError(no_cluster_message(directory));
  directory.check_as_client();
  // Of another user's daemon the socket alone tells.
  if (directory.is_own() && !directory.living_daemon())
    throw SetupError(no_cluster_message(directory));
}

json ask_daemon(const RunDirectory& directory, const json& request,
                std::chrono::milliseconds timeout) {
  require_cluster(directory);
  const std::filesystem::path socket = directory.control_socket();
  const auto got = control::ask_daemons({socket}, request, timeout).front();
  if (got.why.empty()) return got.answer;
  if (got.usage) throw control::UsageError(got.why);
  if (got.refused) throw SetupError(got.why);
  if (got.error == EACCES) throw SetupError(closed_message(directory));
  if (got.error != 0 && !directory.living_daemon()) throw SetupError(no_cluster_message(directory));
  throw SetupError(fmt::format("no answer from the daemon at {}: {}; its log is {}",
                               socket.string(), got.why, directory.log_file().string()));
}

json ask_status_of_all(const RunDirectory& directory) {
  json request = {{"command", "status-of-all"}};
  json status;
  const bool is_told = comes_true(kAllPatience, kAllPause, [&] {
    const json answer = ask_daemon(directory, request);
    status = field(answer, "status");
    if (const auto inquiry = count_field(answer, "inquiry")) request["inquiry"] = *inquiry;
    if (!status.is_object() && !request.contains("inquiry")) throw SetupError(kNoStatus);
    return status.is_object();
  });
  if (is_told) return status;
  throw SetupError("the daemon did not gather the status of all servers in time");
}

json ask_status(const RunDirectory& directory) {
  json status = field(ask_daemon(directory, {{"command", "status"}}), "status");
  if (!status.is_object()) throw SetupError(kNoStatus);
  return status;
}

json ask_flows(const RunDirectory& directory, const std::vector<std::string>& jobs) {
  return ask_daemon(directory, {{"command", "flows"}, {"jobs", jobs}});
}

}  // namespace gradcube::cli
