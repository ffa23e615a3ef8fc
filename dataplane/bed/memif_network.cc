#include "dataplane/bed/memif_network.h"

#include <chrono>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/settings/ask_daemons.h"
#include "dataplane/bed/link_request.h"
#include "dataplane/bed/merged_links.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

constexpr auto kProcessPatience = std::chrono::seconds(10);

}  // namespace

MemifNetwork::MemifNetwork(const control::ClusterSettings& settings,
                           const control::RunDirectory& directory,
                           const std::filesystem::path& program)
    : settings_(settings),
      directory_(directory),
      program_(program),
      parts_(settings_.topology.space(), control::kMaxSwitchProcessPorts),
      links_(bed_links(settings_.topology)) {}

// The daemons take the cores after those of the servers.
void MemifNetwork::prepare() {
  for (unsigned part = 0; part < parts_.count(); ++part) {
    control::ClusterSettings own = settings_;
    const std::size_t of_servers = settings_.topology.servers() * settings_.server_lcores;
    own.lcores = {settings_.lcores[(of_servers + part) % settings_.lcores.size()]};
    const control::RunDirectory directory = directory_.of_switches(part);
    daemons_.emplace_back(
        std::vector<std::string>{program_.string(), "--switches", std::to_string(part), "--run-dir",
                                 directory.path().string(), "--settings",
                                 control::to_json(own).dump()},
        directory, DaemonProcess::Network::shared);
  }
  const auto deadline = std::chrono::steady_clock::now() + kProcessPatience;
  for (DaemonProcess& daemon : daemons_) daemon.await_namespace(deadline);
  for (DaemonProcess& daemon : daemons_) daemon.execute();
  await_reports(daemons_, names(), directory_);
}

std::vector<std::string> MemifNetwork::names() const {
  std::vector<std::string> names;
  for (unsigned part = 0; part < parts_.count(); ++part) {
    names.push_back(fmt::format("switches {}", part));
  }
  return names;
}

std::vector<std::string> MemifNetwork::port_arguments() const {
  return {"--switch-dir", directory_.path().string()};
}

Json MemifNetwork::report() {
  std::vector<control::DaemonAnswer> answers = control::ask_daemons(
      control_sockets(daemons_), {{"command", "status"}}, control::kAnswerPatience);
  std::vector<Json> reports;
  Json daemons = Json::array();
  for (unsigned part = 0; part < answers.size(); ++part) {
    const Json status = answers[part].answer.is_null() ? Json() : answers[part].answer["status"];
    Json one = {{"part", part}, {"pid", daemons_[part].process().pid()}};
    if (status.is_object()) {
      one.update(status);
      for (const char* key : {"impairments", "impaired_links", "switches"}) one.erase(key);
    } else {
      const std::string end = daemons_[part].end_text();
      one["why"] = end.empty() ? answers[part].why : end;
      one["ended"] = !end.empty();
    }
    daemons.push_back(std::move(one));
    reports.push_back(status);
  }
  Json report = merged_links(settings_.topology, links_, parts_, settings_.seed, reports);
  report["switch_daemons"] = std::move(daemons);
  return report;
}

std::size_t MemifNetwork::impair(const nlohmann::json& request) {
  const std::vector<std::size_t> chosen =
      read_link_request(settings_.topology, names_of(links_), LinkKind::emulated, request).links;
  std::vector<bool> asked(parts_.count(), false);
  for (const std::size_t link : chosen) {
    asked[parts_.of(links_[link].server, links_[link].server_port)] = true;
  }
  std::vector<std::filesystem::path> sockets;
  for (unsigned part = 0; part < parts_.count(); ++part) {
    if (asked[part]) sockets.push_back(daemons_[part].directory().control_socket());
  }
  std::size_t changed = 0;
  for (const control::DaemonAnswer& answer :
       control::ask_daemons(sockets, request, control::kAnswerPatience)) {
    if (!answer.answer.is_null()) {
      changed += answer.answer.value("changed", std::size_t{0});
      continue;
    }
    if (answer.usage) throw control::UsageError(answer.why);
    throw control::SetupError("a daemon of switches did not do it: " + answer.why);
  }
  return changed;
}

void MemifNetwork::end() { end_daemons(daemons_, names()); }

}  // namespace gradcube::dataplane
