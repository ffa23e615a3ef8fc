// Which lcore runs which thread of which server.
//
// An engine is one server's share of one lcore: it runs those of the server's threads that are
// assigned to that lcore, and owns one queue on each of the server's ports. The engines of a server
// are numbered 0, 1, ... in the order of their lowest thread; an engine's number is also its queue.
//
// Of L lcores and T threads per server, in a process with all servers or with one:
//   L <= T   thread t runs on lcore t mod L, for every server alike. So the same threads of all
//            servers, which talk only to each other, stay on one lcore.
//   L > T    the lcores are G = L/T groups of T (what is left over stays idle); server s uses group
//            s mod G.
#ifndef GRADCUBE_CONTROL_PLAN_ASSIGNMENT_H_
#define GRADCUBE_CONTROL_PLAN_ASSIGNMENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "control/plan/base/plan.h"

namespace gradcube::control {

struct Lcore {
  unsigned id = 0;
  int numa_node = -1;
};

struct EngineAssignment {
  unsigned lcore = 0;             // its id
  unsigned queue = 0;             // on each of the server's ports
  std::vector<unsigned> threads;  // ascending
};

class Assignment {
 public:
  // Throws a SetupError when there is no lcore. The lcores are distinct.
  static Assignment all_servers(const Plan& plan, std::span<const Lcore> lcores);

  unsigned threads() const { return threads_; }
  unsigned lcore(ServerId server, unsigned thread) const {
    const std::size_t groups = std::max<std::size_t>(lcores_.size() / threads_, 1);
    return lcores_[(server % groups * threads_ + thread) % lcores_.size()].id;
  }

  std::vector<EngineAssignment> engines(ServerId server) const;

 private:
  Assignment(unsigned threads, std::span<const Lcore> lcores)
      : threads_(threads), lcores_(lcores.begin(), lcores.end()) {}

  unsigned threads_;
  std::vector<Lcore> lcores_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ASSIGNMENT_H_
