// The verifier: proves that a plan is an all-reduce and that the streams which the executor sends
// are that plan. It examines ranks and follows pieces: all of a small plan, which proves the whole,
// and of a larger one, such as BCube(16,4)'s, some that a seed draws. What it says of those holds
// exactly; of the others it says nothing.
//
// Of a piece, over all ranks (follow_piece()):
//   - backwards from its owner through the exchanges of the aggregation stage, it finds each rank's
//     contribution exactly once;
//   - forwards through those of the broadcast stage, each rank gets the result exactly once.
//
// Of a rank, in each step of each thread, with blocks of every depth (streams.h, which reads the
// streams off the functions that the data path calls):
//   - the streams carry the pieces of Plan::exchanges();
//   - every segment waits for the right one of an earlier step;
//   - the rank and each of its peers agree on what passes between them, in which order.
//
// Of links (count_links()): no round of a step uses a port for two transfers, if the plan promises
// that. In round r of a mesh, from 1, each rank sends to its peer at offset r, as with a root. On
// BCube(n,k) with BML every link carries N-1 pieces per stage and direction, 2(N-1) in all (BML,
// section 3.2).
//
// Of a whole plan, too:
//   - the first step takes up every piece once, so that each of the trainers that share a server is
//     added once (Streams::check_first_step());
//   - nothing is sent but what brings contributions to owners and results to all.
//
// A link is one direction of one server's port or of an uplink, which servers of a tree share. A
// transfer uses the links of its route (topology_links.h).
//
// All throw a PlanError, naming the server, thread, stage and step, for what does not hold. For
// tests and tools. The whole proof takes time for N^2 pieces in each thread and is meant for plans
// of up to about 100 ranks; a sample takes O(threads N) memory, and for N = 65536 seconds.
#ifndef GRADCUBE_CONTROL_PLAN_VERIFY_H_
#define GRADCUBE_CONTROL_PLAN_VERIFY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/plan/streams.h"

namespace gradcube::control {

struct Sample {
  std::vector<Rank> ranks;
  std::vector<PieceId> pieces;
};

// `count` ranks and as many pieces; the same ones for the same plan and seed. A large plan may have
// a rank twice.
Sample draw_sample(const Plan& plan, std::uint64_t seed, unsigned count);

struct VerifyReport {
  std::uint32_t ranks = 0;   // of the plan
  std::uint32_t pieces = 0;  // of the plan
  // Of one piece from one of the examined ranks to another rank, over both stages.
  std::uint64_t transfers = 0;
  // [level of links]: the most that any link of the level carries, over both stages: of a whole
  // plan any link, of a sample one of the drawn ranks. Empty for a sample of a plan whose servers
  // relay or share uplinks: such links carry what others send through them.
  std::vector<std::uint64_t> link_pieces;
};

VerifyReport verify(const Plan& plan);  // the whole
VerifyReport verify(const Plan& plan, const Sample& sample);

// In the place of Plan::exchanges(): to see what the verifier finds.
using ExchangeFunction =
    std::function<std::vector<Exchange>(Rank, unsigned thread, Stage, unsigned step)>;
ExchangeFunction exchanges_of(const Plan& plan);  // itself; keeps a reference to the plan

// In the place of Streams::transfers(), of each depth.
using TransferFunction = std::function<std::vector<Transfer>(const Streams&, Rank, unsigned thread,
                                                             Stage, unsigned step)>;

// The whole, of what these say.
VerifyReport verify(const Plan& plan, const TransferFunction& transfers,
                    const ExchangeFunction& exchanges);

void follow_piece(const Plan& plan, PieceId piece, const ExchangeFunction& exchanges);

// What the ranks send and receive over links, where `ranks` are all of the plan, or all peers of
// the plan are neighbours.
VerifyReport count_links(const Plan& plan, const std::vector<Rank>& ranks,
                         const ExchangeFunction& exchanges);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_VERIFY_H_
