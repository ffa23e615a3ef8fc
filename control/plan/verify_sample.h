// The verifier of plans that are too large for verify.h, such as BCube(16,4)'s: it examines some
// ranks and follows some pieces, drawn by a seed. What it says of those holds exactly; of the
// others it says nothing.
//
// Of a drawn piece, over all ranks (follow_piece()):
//   - backwards from its owner through the exchanges of the aggregation stage, it finds each rank's
//     contribution exactly once;
//   - forwards through those of the broadcast stage, each rank gets the result exactly once.
//
// Of a drawn rank, in each step of each thread, with blocks of every depth (streams.h):
//   - the streams that the executor would run carry the pieces of the exchanges;
//   - every segment waits for the right one of an earlier step;
//   - the rank and each of its peers agree on what passes between them, in which order;
//   - if all peers are neighbours, no round of a step uses one of the rank's links for two
//     transfers, if the plan promises that. Where servers relay, a link carries what others send
//     through it, and links are not examined.
//
// It throws a PlanError, naming the server, thread, stage and step, for what does not hold.
//
// For tests and tools: takes O(threads N) memory, and for N = 65536 seconds.
#ifndef GRADCUBE_CONTROL_PLAN_VERIFY_SAMPLE_H_
#define GRADCUBE_CONTROL_PLAN_VERIFY_SAMPLE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "control/plan/base/plan.h"

namespace gradcube::control {

struct Sample {
  std::vector<Rank> ranks;
  std::vector<PieceId> pieces;
};

// `count` ranks and as many pieces; the same ones for the same plan and seed. A large plan may have
// a rank twice.
Sample draw_sample(const Plan& plan, std::uint64_t seed, unsigned count);

// The most that any link of each level has of the drawn ranks, over both stages: pieces in one
// direction. Nothing if servers relay.
std::optional<std::vector<std::uint64_t>> verify_sample(const Plan& plan, const Sample& sample);

// In the place of Plan::exchanges(): to see what the verifier finds.
using ExchangeFunction =
    std::function<std::vector<Exchange>(Rank, unsigned thread, Stage, unsigned step)>;

void follow_piece(const Plan& plan, PieceId piece, const ExchangeFunction& exchanges);

// What passes over the links of one rank, [level of the topology], as the most of both directions.
// Throws a PlanError if a round uses one for two transfers and the plan promises otherwise. All
// peers of the plan are neighbours.
std::vector<std::uint64_t> check_links(const Plan& plan, Rank rank,
                                       const ExchangeFunction& exchanges);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_VERIFY_SAMPLE_H_
