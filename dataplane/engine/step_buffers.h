// Where an executor's steps read what this server contributes, and where they write sums: who owns
// which buffer at each step.
//
// In all plans but those whose steps double it is the trainer's buffer. What a step sends it does
// not write before the result comes back, which proves that it was used.
//
// Where steps double (Pattern::doubling) a server sends to all its peers what it also adds itself,
// and its sum is there while a peer may still read what was sent, or may need it once more after a
// loss. So no sum may be written where a contribution lies. Each collective in flight has a buffer
// for each step here, and each byte of them is written once:
//
//   buffer   holds                           written                        read
//   0        what this server's trainers     when the collective begins     by step 0
//            contribute
//   w > 0    the sum of step w-1             by the additions of step w-1   by step w
//
// A step reads its buffer in two ways: packets point into it, first ones and those sent again, and
// its own additions take it. The sum of the last step goes into the trainers' buffers. So these are
// read when the collective begins and written by the last step alone, and no packet points into
// them.
//
// Such a collective ends when all peers have consumed what they got (PlanExecutor::is_sent()). The
// collective that takes its buffers later finds nobody who reads them, but for frames on their way
// a second time, which are dropped as duplicates.
//
// Ownership: an executor's, as long as the job lives. Packets that point here count among those of
// the job (flows/payload_packets.h). One thread: the engine's.
#ifndef GRADCUBE_DATAPLANE_ENGINE_STEP_BUFFERS_H_
#define GRADCUBE_DATAPLANE_ENGINE_STEP_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "control/plan/plan_choice.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/engine/session/session.h"

namespace gradcube::dataplane {

class StepBuffers {
 public:
  // Takes up pages as collectives use them.
  explicit StepBuffers(const control::ThreadSchedule& schedule) : steps_(schedule.steps()) {
    if (!schedule.plan_doubles()) return;
    bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(Session::kMostBegun * steps_ *
                                                            control::kDoublingBelow);
  }

  // What this server contributes to step w of a collective in flight: the whole buffer.
  std::uint8_t* contribution(const CollectiveRequest& request, unsigned w) const {
    if (bytes_ == nullptr) return request.buffer;
    const std::size_t number = request.number % Session::kMostBegun * steps_ + w;
    return bytes_.get() + number * control::kDoublingBelow;
  }
  // Where the sum of step w goes.
  std::uint8_t* sum(const CollectiveRequest& request, unsigned w) const {
    return w + 1 == steps_ ? request.buffer : contribution(request, w + 1);
  }

 private:
  unsigned steps_;
  std::unique_ptr<std::uint8_t[]> bytes_;  // where steps double; each buffer of kDoublingBelow
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_STEP_BUFFERS_H_
