// The verifier: runs a plan symbolically and proves that it is an all-reduce.
//
// What it runs is what the executor sends: the streams of segments, read off the functions that the
// data path calls (streams.h), with blocks of every depth. All ranks execute them step by step, and
// in a ring round by round, in lock step; instead of gradients, every piece on every rank carries
// how often each rank's contribution is in it. It throws a PlanError, naming the server, thread,
// stage and step, unless
//
//   - every segment waits for the right one of an earlier step (Streams::check_dependencies());
//   - the first step takes up every piece once, so that each of the trainers that share a server is
//     added once (Streams::check_first_step());
//   - the streams carry the pieces that Plan::exchanges() says;
//   - the two ends of every exchange are peers in the step and agree on what passes between them,
//     in which order;
//   - the owner of every piece ends the aggregation stage with each rank's contribution in it
//     exactly once;
//   - only complete pieces are broadcast, and at the end every rank has every piece, complete;
//   - no round of a step uses a port for two transfers, if the plan promises that: in round r of a
//     mesh, from 1, each rank sends to its peer at offset r, as with a root;
//   - no link carries more pieces than its share: what the exchanges of the plan bring to it. On
//     BCube(n,k) with BML that is N-1 pieces per stage for every link and direction, 2(N-1) in all
//     (BML, section 3.2).
//
// A link is one direction of one server's port or of an uplink, which servers of a tree share. A
// transfer uses the links of its route (topology_links.h).
//
// For tests and tools: takes O(threads N^3) memory and is meant for plans of up to about 100 ranks.
// verify_sample.h looks at parts of larger ones.
#ifndef GRADCUBE_CONTROL_PLAN_VERIFY_H_
#define GRADCUBE_CONTROL_PLAN_VERIFY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/plan/streams.h"

namespace gradcube::control {

struct VerifyReport {
  std::uint32_t ranks = 0;
  std::uint32_t pieces = 0;
  std::uint64_t transfers = 0;  // of one piece from one rank to another, over both stages
  // [level of links]: the most that any link of the level carries.
  std::vector<std::uint64_t> link_pieces;
};

VerifyReport verify(const Plan& plan);

// The same for other transfers, in the place of Streams::transfers(): to see what the verifier
// finds.
using TransferFunction =
    std::function<std::vector<Transfer>(Rank, unsigned thread, Stage, unsigned step)>;
VerifyReport verify(const Plan& plan, const TransferFunction& transfers);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_VERIFY_H_
