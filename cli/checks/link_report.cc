#include "cli/checks/link_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/text/text_table.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kLongestProblem = 300;
constexpr double kBusy = 0.1;  // of the time: how long a thread waits for a core on a busy host

std::string verdict_on(const LinkResult& result) {
  if (!result.problem.empty()) return control::printable(result.problem, kLongestProblem);
  return result.left_out.empty() ? "ok" : result.left_out;
}

std::string table_of(const control::AddressSpace& space, const std::vector<LinkResult>& results,
                     bool only_problems) {
  TextTable table({{"level"},
                   {"between"},
                   {"and"},
                   {"payload"},
                   {"of the rate"},
                   {"round trip"},
                   {"segments"},
                   {"lost"},
                   {"", Align::left}});
  for (const LinkResult& result : results) {
    if (only_problems && result.problem.empty()) continue;
    std::vector<std::string> row{std::to_string(result.link.level), space.text(result.link.first),
                                 space.text(result.link.second)};
    if (const auto& figures = result.figures) {
      row.push_back(human_rate(figures->payload_bps));
      row.push_back(result.configured_bps > 0 ? fmt::format("{:.1f} %", 100 * figures->payload_bps /
                                                                            result.configured_bps)
                                              : "-");
      row.push_back(human_seconds(figures->round_trip_seconds));
      row.push_back(grouped(figures->sent));
      row.push_back(grouped(figures->lost));
    } else {
      row.insert(row.end(), 5, "-");
    }
    row.push_back(verdict_on(result));
    table.add_row(std::move(row));
  }
  return table.empty() ? "" : table.text() + "\n";
}

// "level 0, 100 Mbit/s: 9 links, payload 96.1 Mbit/s to 98.2 Mbit/s, round trip 80 us to 120 us".
std::string level_line(unsigned level, const std::vector<LinkResult>& results) {
  std::vector<double> rates;
  std::vector<double> round_trips;
  double configured = 0;
  std::size_t links = 0;
  for (const LinkResult& result : results) {
    if (result.link.level != level) continue;
    ++links;
    configured = result.configured_bps;
    if (!result.figures) continue;
    rates.push_back(result.figures->payload_bps);
    round_trips.push_back(result.figures->round_trip_seconds);
  }
  if (links == 0) return "";
  std::string line = fmt::format("level {}, {}: {} link{}", level,
                                 configured > 0 ? human_rate(configured) : "no rate", links,
                                 links == 1 ? "" : "s");
  if (!rates.empty()) {
    const auto [slowest, fastest] = std::minmax_element(rates.begin(), rates.end());
    const auto [soonest, latest] = std::minmax_element(round_trips.begin(), round_trips.end());
    line += fmt::format(", payload {} to {}, round trip {} to {}", human_rate(*slowest),
                        human_rate(*fastest), human_seconds(*soonest), human_seconds(*latest));
  }
  return line + "\n";
}

// "bcube:3,2", "bcube:4,2 (13 servers, 3 absent)"
std::string named(const control::Topology& topology) {
  if (topology.space().is_whole()) return topology.spec();
  return fmt::format("{} ({})", topology.spec(), control::servers_text(topology));
}

// Those of which nothing was found, because nothing was measured.
std::size_t left_out_of(const std::vector<LinkResult>& results) {
  return static_cast<std::size_t>(std::count_if(
      results.begin(), results.end(),
      [](const LinkResult& result) { return result.problem.empty() && !result.left_out.empty(); }));
}

std::size_t problems_of(const std::vector<LinkResult>& results) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(),
                    [](const LinkResult& result) { return !result.problem.empty(); }));
}

// "While they were measured, the daemons waited for a core up to 78 % of the time: ..."; nothing
// where that was not so.
std::string core_line(const std::vector<LinkResult>& results) {
  double longest = 0;
  for (const LinkResult& result : results) {
    if (result.problem.empty() || !result.figures) continue;
    longest = std::max(longest, result.figures->core_wait);
  }
  if (longest < kBusy) return "";
  return fmt::format(
      "the cores were busy: meanwhile a daemon's thread waited for one {:.0f} % of the time, which "
      "makes links seem slow; measure again on an idle host\n",
      100 * std::min(1.0, longest));
}

}  // namespace

std::string links_text(const control::Topology& topology, const std::vector<LinkResult>& results,
                       bool all) {
  std::string text = table_of(topology.space(), results, !all && results.size() > kMostLinks);
  for (unsigned level = 0; level < topology.levels(); ++level) text += level_line(level, results);
  const std::size_t problems = problems_of(results);
  const std::size_t left_out = left_out_of(results);
  const std::size_t judged = results.size() - left_out;
  const std::string others =
      left_out == 0 ? ""
                    : fmt::format("; {} more, of servers that take no trainers, {} not measured",
                                  left_out, left_out == 1 ? "was" : "were");
  const bool no_rate = std::none_of(results.begin(), results.end(),
                                    [](const LinkResult& each) { return each.configured_bps > 0; });
  if (problems == 0) {
    return text + fmt::format(
                      "all {} links of {} are as configured{}{}\n", judged, named(topology),
                      no_rate ? "; no rate is configured, so how fast they are was not judged" : "",
                      others);
  }
  return text +
         fmt::format("{} of {} links of {} {} not as configured{}\n", problems, judged,
                     named(topology), problems == 1 ? "is" : "are", others) +
         core_line(results);
}

nlohmann::ordered_json links_json(const control::Topology& topology,
                                  const std::vector<LinkResult>& results) {
  using Json = nlohmann::ordered_json;
  auto links = Json::array();
  for (const LinkResult& result : results) {
    const auto& figures = result.figures;
    const auto figure = [&](auto LinkFigures::*member) {
      return figures ? Json((*figures).*member) : Json(nullptr);
    };
    links.push_back(
        {{"level", result.link.level},
         {"between", Json::array({control::address_json(topology.space(), result.link.first),
                                  control::address_json(topology.space(), result.link.second)})},
         {"configured_bps",
          result.configured_bps > 0 ? Json(result.configured_bps) : Json(nullptr)},
         {"payload_bps", figure(&LinkFigures::payload_bps)},
         {"round_trip_seconds", figure(&LinkFigures::round_trip_seconds)},
         {"sent", figure(&LinkFigures::sent)},
         {"lost", figure(&LinkFigures::lost)},
         {"core_wait", figure(&LinkFigures::core_wait)},
         {"problem", result.problem.empty() ? Json(nullptr) : Json(result.problem)}});
  }
  return {{"topology", control::topology_json(topology)},
          {"ok", problems_of(results) == 0},
          {"links", std::move(links)}};
}

}  // namespace gradcube::cli
