#include "control/plan/plan_text.h"

#include <fmt/format.h>
#include <string>

namespace gradcube::control {
namespace {

// The level of a step's peers; nothing for a step over several.
std::string level_text(const Plan& plan, unsigned thread, unsigned step) {
  const std::optional<unsigned> level = plan.level(thread, step);
  return level ? std::to_string(*level) : "-";
}

void write_rank(std::ostream& out, const Plan& plan, const Assignment& assignment, Rank rank) {
  const AddressSpace& space = plan.space();
  const ServerId server = plan.placement().server(rank);
  out << "\nserver " << space.text(server) << "\n";
  for (unsigned t = 0; t < plan.threads(); ++t) {
    out << fmt::format("  thread {} on lcore {}, owns {}\n", t, assignment.lcore(server, t),
                       plan.owned(rank, t).text());
    out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}\n", "stage", "step",
                       "level", "peer", "sends", "receives", "pieces");
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      for (unsigned w = 0; w < plan.steps(t); ++w) {
        const std::string level = level_text(plan, t, plan.mirrored(t, stage, w));
        for (const Exchange& exchange : plan.exchanges(rank, t, stage, w)) {
          out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}\n",
                             stage_name(stage), w, level,
                             space.text(plan.placement().server(exchange.peer)),
                             exchange.send.text(), exchange.receive.text(), exchange.send.count());
        }
      }
    }
  }
}

}  // namespace

void write_plan_text(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank) {
  out << fmt::format("{} on {}: {} servers, {} threads, {} pieces, {} steps in each stage\n",
                     plan.algorithm(), plan.topology().spec(), plan.ranks(), plan.threads(),
                     plan.pieces(), plan.steps());
  if (rank) {
    write_rank(out, plan, assignment, *rank);
    return;
  }
  for (Rank r = 0; r < plan.ranks() && out.good(); ++r) write_rank(out, plan, assignment, r);
}

}  // namespace gradcube::control
