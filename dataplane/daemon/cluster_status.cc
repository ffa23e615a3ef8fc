#include "dataplane/daemon/cluster_status.h"

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/base/json_text.h"
#include "control/status/foreign_status.h"
#include "control/status/merged_status.h"

namespace gradcube::dataplane {

using control::status::ServerReport;
using Json = nlohmann::ordered_json;

namespace {

// Flows, of which there may be very many, go first where a status is too long.
std::string status_text(Json status) {
  std::string text = control::json_text(status);
  if (text.size() <= control::kLongestStatus) return text;
  status["flows"] = Json::array();
  return control::json_text(status);
}

ServerReport report_of(bcube::ServerId server, Json status) {
  std::string socket = status["servers"][0]["socket"].get<std::string>();
  const auto pid = status["pid"].get<pid_t>();
  return {server, std::move(socket), pid, std::move(status), ""};
}

std::string failed(const std::exception& error) {
  return control::json_text(Json{{"ok", false}, {"error", error.what()}});
}

Json merged(const control::ClusterSettings& settings, bcube::ServerId own_server, const Json& own,
            const control::StatusAsker::Answers& answers) {
  const bcube::AddressSpace& space = settings.topology.space();
  Json own_part = {{"switches", Json::array()}};  // they are not this cluster's
  for (const char* key :
       {"version", "pid", "uptime_seconds", "algorithm", "fabric", "authentication"}) {
    own_part[key] = own[key];
  }
  std::vector<ServerReport> reports;
  for (const bcube::ServerId server : space.server_list()) {
    if (server == own_server) {
      reports.push_back(report_of(server, own));
      continue;
    }
    const auto found = answers.find(server);
    if (found == answers.end() || !found->second.why.empty()) {
      reports.push_back({server, "", 0, nullptr, found == answers.end() ? "" : found->second.why});
      continue;
    }
    auto status = control::status::checked_status(found->second.text, space, server);
    reports.push_back(status.has_value()
                          ? report_of(server, std::move(*status))
                          : ServerReport{server, "", 0, nullptr,
                                         "its answer is no status: is it another version?"});
  }
  return control::status::merged_status(own_part, settings, reports);
}

// On a thread of its own: all is its own.
std::string merged_answer(control::ClusterSettings settings, bcube::ServerId own_server, Json own,
                          control::StatusAsker::Answers answers) {
  try {
    Json status = merged(settings, own_server, own, answers);
    answers.clear();
    return control::json_text(Json{{"status", std::move(status)}, {"ok", true}});
  } catch (const std::exception& error) {
    return failed(error);
  }
}

}  // namespace

ClusterStatus::ClusterStatus(NodeGroup& nodes, const control::ClusterSettings& settings,
                             control::Incarnation incarnation, Status status)
    : nodes_(nodes),
      settings_(settings),
      own_(nodes.servers().front()),
      status_(std::move(status)),
      asker_(own_, settings.topology.space().server_list(), incarnation),
      answerer_(own_, [this] { return status_text(status_()); }),
      merging_for_(asker_.last_finished()),
      merged_for_(merging_for_) {
  nodes_.around().status = [this](const control::NodeMessage& message, control::Instant now) {
    on_status_message(message, now);
  };
}

ClusterStatus::~ClusterStatus() { nodes_.around().status = nullptr; }

std::string ClusterStatus::answer(const nlohmann::json& request) {
  const auto inquiry = request.find("inquiry");
  if (inquiry == request.end())
    return control::json_text(Json{{"inquiry", asker_.begin()}, {"ok", true}});
  if (!inquiry->is_number_unsigned()) {
    throw control::UsageError("\"inquiry\" is a number that this command has given");
  }
  // Before the first there is none.
  const bool there = !merged_.empty() && merged_for_ >= inquiry->get<std::uint64_t>();
  return there ? merged_ : control::json_text(Json{{"status", nullptr}, {"ok", true}});
}

void ClusterStatus::tick(control::Instant now) {
  control::NodeMessages out;
  asker_.on_time(now, out);
  send(out);
  merge();
}

void ClusterStatus::merge() {
  if (merging_.valid()) {
    if (merging_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    merged_ = merging_.get();
    merged_for_ = merging_for_;
  }
  if (asker_.last_finished() == merging_for_) return;
  merging_for_ = asker_.last_finished();
  try {
    merging_ = std::async(std::launch::async, merged_answer, settings_, own_, status_(),
                          asker_.take_answers());
  } catch (const std::exception& error) {  // there is no thread, or no memory
    merged_ = failed(error);
    merged_for_ = merging_for_;
  }
}

void ClusterStatus::on_status_message(const control::NodeMessage& message, control::Instant now) {
  control::NodeMessages out;
  if (const auto* ask = std::get_if<control::StatusAsk>(&message.body)) {
    answerer_.on_ask(message.from, *ask, now, out);
  } else if (const auto* part = std::get_if<control::StatusPart>(&message.body)) {
    asker_.on_part(message.from, *part, now, out);
  }
  send(out);
}

void ClusterStatus::send(const control::NodeMessages& messages) {
  for (const control::NodeMessage& message : messages) nodes_.at(own_).carry(message);
}

}  // namespace gradcube::dataplane
