#include "dataplane/daemon/cluster_status.h"

#include <string>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/bed/merged_status.h"
#include "dataplane/daemon/foreign_status.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

// Flows, of which there may be very many, go first where a status is too long.
std::string status_text(Json status) {
  std::string text = status.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= control::kLongestStatus) return text;
  status["flows"] = Json::array();
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ServerReport report_of(bcube::ServerId server, Json status) {
  std::string socket = status["servers"][0]["socket"].get<std::string>();
  const auto pid = status["pid"].get<pid_t>();
  return {server, std::move(socket), pid, std::move(status), ""};
}

}  // namespace

ClusterStatus::ClusterStatus(NodeGroup& nodes, const control::ClusterSettings& settings,
                             control::Incarnation incarnation, Status status)
    : nodes_(nodes),
      settings_(settings),
      own_(nodes.servers().front()),
      status_(std::move(status)),
      asker_(own_, static_cast<std::uint32_t>(settings.topology.servers()), incarnation),
      answerer_(own_, [this] { return status_text(status_()); }) {
  nodes_.set_status_channel(this);
}

ClusterStatus::~ClusterStatus() { nodes_.set_status_channel(nullptr); }

Json ClusterStatus::answer(const nlohmann::json& request) {
  const auto inquiry = request.find("inquiry");
  if (inquiry == request.end()) return {{"inquiry", asker_.begin()}};
  if (!inquiry->is_number_unsigned()) {
    throw control::UsageError("\"inquiry\" is a number that this command has given");
  }
  const bool there = asker_.finished(inquiry->get<std::uint64_t>());
  return {{"status", there ? merged() : Json(nullptr)}};
}

void ClusterStatus::tick(control::Instant now) {
  control::NodeMessages out;
  asker_.on_time(now, out);
  send(out);
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

Json ClusterStatus::merged() const {
  const bcube::AddressSpace& space = settings_.topology.space();
  const Json own = status_();
  Json head = Json::object();
  for (const char* key : {"version", "pid", "uptime_seconds", "topology", "algorithm"}) {
    head[key] = own[key];
  }
  std::vector<ServerReport> reports;
  for (bcube::ServerId server = 0; server < space.servers(); ++server) {
    if (server == own_) {
      reports.push_back(report_of(server, own));
      continue;
    }
    const auto found = asker_.answers().find(server);
    if (found == asker_.answers().end() || !found->second.why.empty()) {
      reports.push_back(
          {server, "", 0, nullptr, found == asker_.answers().end() ? "" : found->second.why});
      continue;
    }
    auto status = checked_status(found->second.text, space, server);
    reports.push_back(status.has_value()
                          ? report_of(server, std::move(*status))
                          : ServerReport{server, "", 0, nullptr,
                                         "its answer is no status: is it another version?"});
  }
  // The switches are not this cluster's.
  Json status = merged_status(head, settings_, {{"switches", Json::array()}}, reports);
  status["fabric"] = own["fabric"];
  return status;
}

}  // namespace gradcube::dataplane
