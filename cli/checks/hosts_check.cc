#include "cli/checks/hosts_check.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "cli/text/json_fields.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/plan/neighbour_rounds.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr auto kLeastPatience = std::chrono::seconds(30);
constexpr unsigned kWaitsOfRound = 3;  // in which a link may time out
constexpr std::size_t kLongestComplaint = 300;

using LinkKey = std::tuple<unsigned, control::ServerId, control::ServerId>;

LinkKey key_of(const control::NeighbourLink& link) { return {link.level, link.first, link.second}; }

LinkResult link_from_json(const control::Topology& topology, const json& link) {
  constexpr std::string_view kWhere = "a host's report:";
  const json& between = items(link, "between");
  const auto server = [&](std::size_t end) {
    return control::parse_server(
        topology, between.size() == 2 ? address_text(between[end]) : std::string("-"), kWhere);
  };
  LinkResult result;
  result.link = {.level = static_cast<unsigned>(count_field(link, "level").value_or(0)),
                 .first = server(0),
                 .second = server(1)};
  result.configured_bps = number_field(link, "configured_bps").value_or(0);
  result.problem = text_field(link, "problem").value_or("");
  result.left_out = text_field(link, "left_out").value_or("");
  if (const auto payload = number_field(link, "payload_bps")) {
    result.figures = {.payload_bps = *payload,
                      .round_trip_seconds = number_field(link, "round_trip_seconds").value_or(0),
                      .sent = count_field(link, "sent").value_or(0),
                      .lost = count_field(link, "lost").value_or(0),
                      .core_wait = number_field(link, "core_wait").value_or(0)};
  }
  return result;
}

void put_together(LinkResult& both, const LinkResult& other) {
  if (both.problem.empty()) both.problem = other.problem;
  if (!both.figures || !other.figures) {
    both.figures.reset();
    return;
  }
  LinkFigures& figures = *both.figures;
  figures.payload_bps = std::min(figures.payload_bps, other.figures->payload_bps);
  figures.round_trip_seconds =
      std::max(figures.round_trip_seconds, other.figures->round_trip_seconds);
  figures.sent += other.figures->sent;
  figures.lost += other.figures->lost;
  figures.core_wait = std::max(figures.core_wait, other.figures->core_wait);
}

json request_for(const LinkCheckSettings& settings) {
  const double seconds = std::chrono::duration<double>(settings.timeout).count();
  json words = {"check",
                "--json",
                "--all",
                "--job",
                fmt::format("check-{:08x}", std::random_device()()),
                "--least-rate",
                fmt::format("{}", settings.least_rate),
                "--most-lost",
                fmt::format("{}", settings.most_lost),
                "--timeout",
                fmt::format("{}", seconds)};
  if (settings.most_round_trip_seconds) {
    words.push_back("--most-round-trip");
    words.push_back(fmt::format("{}", *settings.most_round_trip_seconds));
  }
  return {{"words", words}};
}

// What a host has answered: its report.
json report_in(const json& answer) {
  const std::string output = text_field(answer, "output").value_or("");
  json report = json::parse(output, nullptr, false);
  if (report.is_object()) return report;
  throw control::SetupError("check has no result: " +
                            last_words(text_field(answer, "errors").value_or("")));
}

// In a host's report: each link of its server once, and no others. Throws where it is otherwise.
std::map<LinkKey, LinkResult> links_of(const control::Topology& topology, control::ServerId server,
                                       const json& report) {
  std::set<LinkKey> expected;
  for (const auto& round : control::neighbour_rounds(topology)) {
    for (const control::NeighbourLink& link : round) {
      if (link.first == server || link.second == server) expected.insert(key_of(link));
    }
  }
  std::map<LinkKey, LinkResult> found;
  for (const json& link : items(report, "links")) {
    const LinkResult result = link_from_json(topology, link);
    const LinkKey key = key_of(result.link);
    if (expected.erase(key) == 0) {
      throw control::SetupError(fmt::format(
          "its report has a link twice, or one that it does not have: level {}, {} to {}",
          result.link.level, topology.space().text(result.link.first),
          topology.space().text(result.link.second)));
    }
    found[key] = result;
  }
  if (expected.empty()) return found;
  throw control::SetupError(fmt::format("its report lacks {} of its links", expected.size()));
}

}  // namespace

std::vector<LinkResult> check_hosts(HostGroup& group, const ClusterHosts& hosts,
                                    const LinkCheckSettings& settings) {
  const control::Topology topology = hosts.settings.rated_topology();
  const auto rounds = static_cast<unsigned>(control::neighbour_rounds(topology).size());
  const auto patience = kLeastPatience + std::chrono::ceil<std::chrono::seconds>(
                                             settings.timeout * (kWaitsOfRound * rounds));
  HostGroup::Answers answers = group.ask(request_for(settings), patience);
  std::map<LinkKey, LinkResult> found;
  for (std::size_t host = 0; host < hosts.names.size(); ++host) {
    if (!answers.failures[host].empty()) continue;
    try {
      for (const auto& [key, result] :
           links_of(topology, hosts.server(host), report_in(answers.values[host]))) {
        const auto [place, is_new] = found.try_emplace(key, result);
        if (!is_new) put_together(place->second, result);
      }
    } catch (const std::exception& error) {
      answers.failures[host] = control::printable(error.what(), kLongestComplaint);
    }
  }
  answers.require_all(hosts);
  std::vector<LinkResult> results;
  for (const auto& [key, result] : found) results.push_back(result);
  return results;
}

Report hosts_check_report(const ClusterHosts& hosts, const std::vector<LinkResult>& results,
                          bool all) {
  Report report = links_report(hosts.settings.rated_topology(), results, all);
  const control::HostList& rows = hosts.settings.hosts;
  if (hosts.settings.interfaces.empty() && hosts.settings.topology.ports() > 1 && !rows.empty() &&
      rows.front().size() == 1) {
    report.line(fmt::format(
        "the ports of each server share its address, {} of the first, and so what its NIC carries; "
        "here they were measured one after the other",
        hosts.address(0)));
  }
  return report;
}

bool all_right(const std::vector<LinkResult>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const LinkResult& result) { return result.problem.empty(); });
}

}  // namespace gradcube::cli
