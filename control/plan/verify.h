// The verifier: runs a plan symbolically and proves that it is an all-reduce.
//
// All servers execute their exchanges step by step, in lock step; instead of gradients, every piece
// on every server carries how often each server's contribution is in it. It throws a PlanError,
// naming the server, thread, stage and step, unless
//
//   - the two ends of every exchange are 1-hop neighbours at the step's level and agree on what
//   passes between them;
//   - the owner of every piece ends the aggregation stage with each server's contribution in it
//   exactly once;
//   - only complete pieces are broadcast, and at the end every server has every piece, complete;
//   - no step uses a link for more than one thread (of one server and level, in one direction);
//   - no link carries more pieces than its share: what the mesh at each level needs. On BCube(n,k)
//   with BML that is
//     N-1 pieces per stage for every link and direction, 2(N-1) in all (BML, section 3.2).
//
// For tests and tools: takes O(threads N^3) memory and is meant for topologies of up to about 100
// servers.
#ifndef GRADCUBE_CONTROL_PLAN_VERIFY_H_
#define GRADCUBE_CONTROL_PLAN_VERIFY_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "control/plan/plan.h"

namespace gradcube::control {

class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct VerifyReport {
  uint32_t servers = 0;
  uint32_t pieces = 0;
  uint64_t transfers = 0;  // of one piece from one server to another, over both stages
  std::vector<uint64_t>
      link_pieces;  // [level]: the most that any link of the level carries in one direction
};

// Answers as Plan::exchanges does; another one can be put in its place to see what the verifier
// says.
using ExchangeFunction =
    std::function<std::vector<Exchange>(ServerId, unsigned thread, Stage, unsigned step)>;

VerifyReport verify(const Plan& plan);
VerifyReport verify(const Plan& plan, const ExchangeFunction& exchanges);

}  // namespace gradcube::control

#endif
