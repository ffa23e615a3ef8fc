#include "cli/checks/host_checks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cluster/control_client.h"
#include "cli/cluster/daemon_process.h"
#include "cli/cluster/running_cluster.h"
#include "control/base/printable.h"
#include "control/settings/cluster_key.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::RunDirectory;

constexpr std::size_t kLongestRefusal = 1000;

fs::path nearest_folder(const RunDirectory& directory) {
  fs::path folder = directory.path();
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

bool has_daemon(const RunDirectory& directory) {
  try {
    return directory.living_daemon().has_value();
  } catch (const std::exception&) {
    return false;  // check_cluster() says why
  }
}

// Not in a directory that `up` would refuse: it may be another user's.
fs::path trial_folder(const RunDirectory& directory) {
  try {
    if (directory.exists()) directory.check();
    return nearest_folder(directory);
  } catch (const std::exception&) {
    return "/tmp";
  }
}

// What a trainer of a job of all servers is told; empty if all can join. They are in one process
// here, and take as many descriptors as it may have.
std::string why_no_trainers(const RunDirectory& directory) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  try {
    const RunningCluster cluster = running_cluster(directory);
    std::vector<Session> sessions;
    for (const PerfTrainer& trainer : trainers_of(cluster, placement_of(cluster, {}, "doctor"))) {
      sessions.emplace_back("doctor", trainer.socket);
    }
    return "";
  } catch (const std::exception& error) {
    return control::printable(error.what(), kLongestRefusal);
  }
}

// Of it, or of the folder in which it would be made.
std::string why_unwritable(const RunDirectory& directory) {
  const fs::path folder = nearest_folder(directory);
  std::string trial = folder / ".gradcube-XXXXXX";  // what root may do access() does not know
  if (mkdtemp(trial.data()) != nullptr) {
    rmdir(trial.c_str());
    return "";
  }
  const int reason = errno;
  return fmt::format("cannot write to {}: {}", folder.string(), std::strerror(reason));
}

// Whether `python` finds a module, which is not run; empty when there is no such program, or it
// does not work.
std::optional<bool> finds_module(const std::string& python, const std::string& module) {
  const std::string command = fmt::format(
      "{} -c 'import importlib.util, sys; "
      "sys.exit(0 if importlib.util.find_spec(\"{}\") else 3)' >/dev/null 2>&1",
      python, module);
  const int status = std::system(command.c_str());
  if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3)) return {};
  return WEXITSTATUS(status) == 0;
}

constexpr std::array<std::string_view, 3> kVerdicts = {"OK", "WARN", "FAIL"};

std::string_view verdict_text(Verdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

}  // namespace

std::vector<HostCheck> check_daemon(const control::ClusterSettings& settings,
                                    const RunDirectory& directory) {
  DaemonStart daemon;
  try {
    daemon = daemon_of(settings);
  } catch (const std::exception& error) {
    return {{"daemon", Verdict::fail, error.what(), "meson setup build && ninja -C build"}};
  }
  const std::string path = daemon.executable.string();
  if (has_daemon(directory)) return {good("daemon", path + ": one runs, so none was tried")};
  try {
    std::string refusal;
    try_daemon(trial_folder(directory), daemon,
               [&refusal](const RunDirectory& trial) { refusal = why_no_trainers(trial); });
    return {good("daemon", fmt::format("{}: one of {} starts", path, settings.topology.spec())),
            refusal.empty() ? good("trainers", "one joins at each of its servers")
                            : HostCheck{"trainers", Verdict::fail, refusal, ""}};
  } catch (const std::exception& error) {
    return {{"daemon", Verdict::fail,
             fmt::format("{}: one of {} does not start: {}", path, settings.topology.spec(),
                         control::printable(error.what(), kLongestRefusal)),
             fmt::format("as it says; if libraries are missing, `{} --help` names them",
                         control::shell_word(path))}};
  }
}

HostCheck check_authentication(const control::ClusterSettings& settings) {
  const std::string name = "authentication";
  const std::string remedy =
      "gradcube keygen /etc/gradcube/cube.key, copy it to every host, and name it as key-file in "
      "[security] of the cluster file";
  if (settings.authentication == control::Authentication::none) {
    return {name, Verdict::warn,
            "authentication = \"none\": whoever can send frames to the daemons can change results "
            "and end jobs",
            remedy};
  }
  if (settings.key_file.empty()) {
    return good(name,
                "the settings name no key-file: `gradcube up` makes a key for as long as a cluster "
                "runs, and the embedded fabric needs none; daemons that are started by themselves "
                "refuse to start without one");
  }
  try {
    control::read_key_file(settings.key_file);
    return good(name, fmt::format("{} is a key, and nobody but its owner can read it",
                                  control::printable(settings.key_file)));
  } catch (const std::exception& error) {
    return {name, Verdict::fail, error.what(), remedy};
  }
}

std::vector<HostCheck> check_cluster(const RunDirectory& directory) {
  const std::string path = directory.path().string();
  try {
    directory.check_path();
    directory.require_open();
    if (const std::string problem = why_unwritable(directory); !problem.empty()) {
      return {{"run directory", Verdict::fail, problem,
               "set GRADCUBE_RUN to a directory that you can write to"}};
    }
    if (!directory.exists()) {
      return {good("run directory", path + " is not there yet: `gradcube up` makes it"),
              good("cluster", "none runs")};
    }
    directory.check();
    const auto daemon = directory.living_daemon();
    std::vector<HostCheck> checks = {good("run directory", path)};
    const std::size_t stale = directory.stale_sockets().size();
    if (!daemon && stale > 0) {
      checks[0] = {"run directory", Verdict::warn,
                   fmt::format("{} holds {} sockets of a daemon that is gone", path, stale),
                   "nothing to do: the next `gradcube up` removes them"};
    }
    if (!daemon && !directory.living_parts().empty()) {
      checks.push_back({"cluster", Verdict::warn, no_cluster_message(directory), "gradcube down"});
      return checks;
    }
    checks.push_back(
        daemon ? good("cluster", fmt::format("one runs, pid {}: `gradcube status`", daemon->pid))
               : good("cluster", "none runs"));
    return checks;
  } catch (const std::exception& error) {
    return {{"run directory", Verdict::fail, error.what(), "export GRADCUBE_RUN=\"$(mktemp -d)\""}};
  }
}

std::vector<HostCheck> check_python() {
  const std::string python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  if (const std::string why = why_no_programs(); !why.empty()) {
    return {{"python", Verdict::warn, "cannot look for numpy and torch: " + why, ""}};
  }
  std::vector<HostCheck> checks;
  for (const auto& [module, package] :
       {std::pair{"numpy", "python3-numpy"}, std::pair{"torch", "python3-torch"}}) {
    const std::string name = fmt::format("python: {}", module);
    const auto found = finds_module(python, module);
    if (found.value_or(false)) {
      checks.push_back(good(name, fmt::format("{} has it", python)));
    } else {
      checks.push_back(
          {name, Verdict::warn,
           found.has_value()
               ? fmt::format("{} has no module {}: Python trainers need it", python, module)
               : fmt::format("{} does not run: Python trainers need it", python),
           fmt::format("sudo apt-get install -y {}", package)});
    }
  }
  return checks;
}

bool can_run(const std::vector<HostCheck>& checks) {
  for (const HostCheck& check : checks) {
    if (check.verdict == Verdict::fail) return false;
  }
  return true;
}

std::string checks_text(const std::vector<HostCheck>& checks) {
  std::size_t width = 0;
  for (const HostCheck& check : checks) width = std::max(width, check.name.size());
  std::string text;
  for (const HostCheck& check : checks) {
    text += fmt::format("{:<4}  {:<{}}  {}\n", verdict_text(check.verdict), check.name, width,
                        check.finding);
    if (!check.remedy.empty()) text += fmt::format("{:<{}}  -> {}\n", "", width + 6, check.remedy);
  }
  return text;
}

nlohmann::json checks_json(const std::vector<HostCheck>& checks) {
  nlohmann::json list = nlohmann::json::array();
  for (const HostCheck& check : checks) {
    list.push_back({{"name", check.name},
                    {"verdict", verdict_text(check.verdict)},
                    {"finding", check.finding},
                    {"remedy", check.remedy}});
  }
  return {{"ok", can_run(checks)}, {"checks", list}};
}

}  // namespace gradcube::cli
