#include "control/plan/plan_text.h"

#include <fmt/format.h>

namespace gradcube::control {
namespace {

void write_server(std::ostream& out, const Plan& plan, const Assignment& assignment,
                  ServerId server) {
  const AddressSpace& space = plan.space();
  out << "\nserver " << space.text(server) << "\n";
  for (unsigned t = 0; t < plan.threads(); ++t) {
    out << fmt::format("  thread {} on lcore {}, owns {}\n", t, assignment.lcore(server, t),
                       plan.piece_set(server, t, plan.steps() - 1).text(space));
    out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}\n", "stage", "step",
                       "level", "peer", "sends", "receives", "pieces");
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      for (unsigned w = 0; w < plan.steps(); ++w) {
        for (const Exchange& exchange : plan.exchanges(server, t, stage, w)) {
          out << fmt::format("    {:<12} {:>4} {:>5}  {:<12} {:<16} {:<16} {:>7}\n",
                             stage_name(stage), w, plan.level(t, plan.mirrored(stage, w)),
                             space.text(exchange.peer), exchange.send.text(space),
                             exchange.receive.text(space), exchange.send.count(space));
        }
      }
    }
  }
}

}  // namespace

void write_plan_text(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<ServerId> server) {
  out << fmt::format("{} on {}: {} servers, {} threads, {} pieces, {} steps in each stage\n",
                     plan.algorithm(), plan.topology().spec(), plan.servers(), plan.threads(),
                     plan.pieces(), plan.steps());
  if (server) {
    write_server(out, plan, assignment, *server);
    return;
  }
  for (ServerId s = 0; s < plan.servers() && out.good(); ++s) {
    write_server(out, plan, assignment, s);
  }
}

}  // namespace gradcube::control
