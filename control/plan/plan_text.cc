#include "control/plan/plan_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "control/base/units.h"

namespace gradcube::control {
namespace {

// The level of a step's peers; nothing for a step over several.
std::string level_text(const Plan& plan, unsigned thread, unsigned step) {
  const std::optional<unsigned> level = plan.level(thread, step);
  return level ? std::to_string(*level) : "-";
}

std::string server_text(const Plan& plan, Rank rank) {
  return plan.space().text(plan.placement().server(rank));
}

// In a ring a rank sends to one server and receives from another.
bool has_ring(const Plan& plan, unsigned thread) {
  for (unsigned w = 0; w < plan.steps(thread); ++w) {
    if (plan.step(thread, w).is_ring()) return true;
  }
  return false;
}

void write_rank(std::ostream& out, const Plan& plan, const Assignment& assignment, Rank rank) {
  const ServerId server = plan.placement().server(rank);
  out << "\nserver " << server_text(plan, rank) << "\n";
  if (const unsigned trainers = plan.placement().trainers_per_server(); trainers > 1) {
    out << fmt::format(
        "  local: before step 0 the {} trainers of ranks {} to {} are added in this order, and "
        "results go to all of them, in the server's memory\n",
        trainers, rank * trainers, rank * trainers + trainers - 1);
  }
  for (unsigned t = 0; t < plan.threads(); ++t) {
    out << fmt::format("  thread {} on lcore {}, owns {}\n", t, assignment.lcore(server, t),
                       plan.owned(rank, t).none ? "nothing" : plan.owned(rank, t).text());
    const bool rings = has_ring(plan, t);
    out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}", "stage", "step",
                       "level", rings ? "to" : "peer", "sends", "receives", "pieces");
    out << (rings ? fmt::format("  {:<12} {:>5}\n", "from", "round") : "\n");
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      for (unsigned w = 0; w < plan.steps(t); ++w) {
        const std::string level = level_text(plan, t, plan.mirrored(t, stage, w));
        for (const Exchange& exchange : plan.exchanges(rank, t, stage, w)) {
          out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}",
                             stage_name(stage), w, level, server_text(plan, exchange.peer),
                             exchange.send.text(), exchange.receive.text(),
                             std::max(exchange.send.count(), exchange.receive.count()));
          out << (rings ? fmt::format("  {:<12} {:>5}\n", server_text(plan, exchange.source),
                                      exchange.round)
                        : "\n");
        }
      }
    }
  }
}

}  // namespace

void write_plan_text(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank) {
  const unsigned trainers = plan.placement().trainers_per_server();
  out << fmt::format("{} on {}: {} servers, {}{}, {}, {}{}\n", plan.algorithm(),
                     plan.topology().spec(), plan.ranks(),
                     trainers == 1 ? "" : fmt::format("{} trainers on each, ", trainers),
                     counted(plan.threads(), "thread"), counted(plan.pieces(), "piece"),
                     counted(plan.steps(), "step"), plan.doubles() ? "" : " in each stage");
  if (rank) {
    write_rank(out, plan, assignment, *rank);
    return;
  }
  for (Rank r = 0; r < plan.ranks() && out.good(); ++r) write_rank(out, plan, assignment, r);
}

}  // namespace gradcube::control
