#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "cli/checks/link_check.h"
#include "cli/text/units_text.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kLongestProblem = 300;
constexpr double kBusy = 0.1;  // of the time: how long a thread waits for a core on a busy host

std::string verdict_on(const LinkResult& result) {
  if (!result.problem.empty()) return control::printable(result.problem, kLongestProblem);
  return result.left_out.empty() ? "ok" : result.left_out;
}

void add_links(Report& report, const control::AddressSpace& space,
               const std::vector<LinkResult>& results, bool only_problems) {
  ReportTable& table = report.table("links", {{"level", "level"},
                                              {"between", ""},
                                              {"and", ""},
                                              {{}, "between"},
                                              {{}, "configured_bps"},
                                              {"payload", "payload_bps"},
                                              {"of the rate", ""},
                                              {"round trip", "round_trip_seconds"},
                                              {"segments", "sent"},
                                              {"lost", "lost"},
                                              {{}, "core_wait"},
                                              {"", "", Align::left},
                                              {{}, "problem"},
                                              {{}, "left_out"}});
  for (const LinkResult& result : results) {
    const auto& [first, second] = std::pair(result.link.first, result.link.second);
    const double configured = result.configured_bps;
    const auto& figures = result.figures;
    const auto figure = [&](const auto& make) { return cell::known(figures, make); };
    table.add({cell::plain(result.link.level), cell::shown(space.text(first)),
               cell::shown(space.text(second)),
               cell::told(nlohmann::ordered_json::array(
                   {control::address_json(space, first), control::address_json(space, second)})),
               configured > 0 ? cell::told(configured) : cell::none(),
               figure([](const LinkFigures& its) { return cell::rate(its.payload_bps); }),
               cell::shown(figures && configured > 0
                               ? fmt::format("{:.1f} %", percent_of_rate(*figures, configured))
                               : "-"),
               figure([](const LinkFigures& its) { return cell::seconds(its.round_trip_seconds); }),
               figure([](const LinkFigures& its) { return cell::count(its.sent); }),
               figure([](const LinkFigures& its) { return cell::count(its.lost); }),
               figure([](const LinkFigures& its) { return cell::told(its.core_wait); }),
               cell::shown(verdict_on(result)),
               result.problem.empty() ? cell::none() : Cell(result.problem),
               result.left_out.empty() ? cell::none() : Cell(result.left_out)},
              !only_problems || !result.problem.empty());
  }
  if (!table.text().empty()) report.line("");
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
  std::string line =
      fmt::format("level {}, {}: {}", level, configured > 0 ? human_rate(configured) : "no rate",
                  control::counted(links, "link"));
  if (!rates.empty()) {
    const auto [slowest, fastest] = std::minmax_element(rates.begin(), rates.end());
    const auto [soonest, latest] = std::minmax_element(round_trips.begin(), round_trips.end());
    line += fmt::format(", payload {} to {}, round trip {} to {}", human_rate(*slowest),
                        human_rate(*fastest), human_seconds(*soonest), human_seconds(*latest));
  }
  return line;
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
      "makes links seem slow; measure again on an idle host",
      100 * std::min(1.0, longest));
}

}  // namespace

Report links_report(const control::Topology& topology, const std::vector<LinkResult>& results,
                    bool all) {
  const std::size_t problems = problems_of(results);
  Report report;
  report.fact("topology", control::topology_json(topology));
  report.fact("ok", problems == 0);
  add_links(report, topology.space(), results, !all && results.size() > kMostLinks);
  const auto add_line = [&report](const std::string& line) {
    if (!line.empty()) report.line(line);
  };
  for (unsigned level = 0; level < topology.levels(); ++level) {
    add_line(level_line(level, results));
  }
  const std::size_t left_out = left_out_of(results);
  const std::size_t judged = results.size() - left_out;
  const std::string others =
      left_out == 0 ? ""
                    : fmt::format("; {} more, of servers that take no trainers, {} not measured",
                                  left_out, left_out == 1 ? "was" : "were");
  const bool no_rate = std::none_of(results.begin(), results.end(),
                                    [](const LinkResult& each) { return each.configured_bps > 0; });
  if (problems == 0) {
    report.line(fmt::format(
        "{} of {} {} as configured{}{}",
        judged == 1 ? "the link" : fmt::format("all {} links", judged), named(topology),
        judged == 1 ? "is" : "are",
        no_rate ? "; no rate is configured, so how fast they are was not judged" : "", others));
  } else {
    report.line(fmt::format("{} of {} links of {} {} not as configured{}", problems, judged,
                            named(topology), problems == 1 ? "is" : "are", others));
    add_line(core_line(results));
  }
  return report;
}

}  // namespace gradcube::cli
