#include "control/plan/assignment.h"

#include <algorithm>
#include <optional>

#include "control/base/errors.h"

namespace gradcube::control {
namespace {

void require_lcores(std::span<const Lcore> lcores) {
  if (lcores.empty()) {
    throw SetupError("there is no lcore to run the engines on: give at least one");
  }
}

// The NUMA node of the port that a thread uses first; -1 if it uses several, or it is not known.
int node_of_first_step(const Plan& plan, unsigned thread, std::span<const int> port_nodes) {
  const std::optional<unsigned> level = plan.level(thread, 0);
  if (!level) return -1;
  const unsigned port = plan.topology().dimensions()[*level].port;
  return port < port_nodes.size() ? port_nodes[port] : -1;
}

bool near(int node, int other) { return node < 0 || other < 0 || node == other; }

}  // namespace

Assignment Assignment::all_servers(const Plan& plan, std::span<const Lcore> lcores) {
  require_lcores(lcores);
  const std::size_t threads = plan.threads();
  const std::size_t groups = std::max<std::size_t>(lcores.size() / threads, 1);
  std::vector<std::vector<unsigned>> result(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t t = 0; t < threads; ++t) {
      result[g].push_back(lcores[(g * threads + t) % lcores.size()].id);
    }
  }
  return Assignment(std::move(result));
}

Assignment Assignment::one_server(const Plan& plan, std::span<const Lcore> lcores,
                                  std::span<const int> port_nodes) {
  require_lcores(lcores);
  const std::size_t fair = (plan.threads() + lcores.size() - 1) / lcores.size();
  std::vector<std::size_t> load(lcores.size(), 0);
  std::vector<unsigned> result;
  for (unsigned t = 0; t < plan.threads(); ++t) {
    const int node = node_of_first_step(plan, t, port_nodes);
    // There always is one: fair * L >= T, so some lcore has less than the fair share.
    const auto least_loaded = [&](bool local) {
      std::size_t chosen = lcores.size();
      for (std::size_t i = 0; i < lcores.size(); ++i) {
        if (load[i] >= fair || (local && !near(lcores[i].numa_node, node))) continue;
        if (chosen == lcores.size() || load[i] < load[chosen]) chosen = i;
      }
      return chosen;
    };
    std::size_t chosen = least_loaded(true);
    if (chosen == lcores.size()) chosen = least_loaded(false);
    ++load[chosen];
    result.push_back(lcores[chosen].id);
  }
  return Assignment({std::move(result)});
}

unsigned Assignment::engine(ServerId server, unsigned thread) const {
  const std::vector<unsigned>& lcores = lcores_[group(server)];
  unsigned number = 0;
  for (auto at = lcores.begin(); *at != lcores[thread]; ++at) {
    if (std::find(lcores.begin(), at, *at) == at) ++number;  // the first thread of an engine
  }
  return number;
}

std::vector<EngineAssignment> Assignment::engines(ServerId server) const {
  std::vector<EngineAssignment> result;
  const std::vector<unsigned>& lcores = lcores_[group(server)];
  for (unsigned t = 0; t < lcores.size(); ++t) {
    const auto found =
        std::find_if(result.begin(), result.end(),
                     [&](const EngineAssignment& engine) { return engine.lcore == lcores[t]; });
    if (found != result.end()) {
      found->threads.push_back(t);
    } else {
      result.push_back({lcores[t], static_cast<unsigned>(result.size()), {t}});
    }
  }
  return result;
}

}  // namespace gradcube::control
