// What several trainers of one server do among themselves in a collective: the innermost dimension
// of a job, whose "link" is the server's memory.
//
// A server with T trainers takes part in its plan as one rank, on the buffer of one of them, the
// base. The trainers' ranks are the server's rank times T plus their numbers there, 0 to T-1. So
// the chunks of a server's trainers lie side by side, and are one chunk for the plan.
//
//   before   the plan's first step takes a range up, once: where the kind reduces, the base becomes
//            the sum of all T buffers there, added by ascending number; in an all_gather it becomes
//            what each trainer has of it, its chunk
//   after    what has its result is copied to the others, as far as their buffers need it
//
// In every plan the first step takes up each byte of a thread's share exactly once, whether it
// sends it or adds to it (Streams::check_first_step()). So that is the place where trainers are
// added, segment by segment, while the bytes are in the cache. Where steps double, each byte goes
// to all peers: trainers are added before, all bytes at once.
//
// Plain values and arithmetic on bytes of the buffer; the engine and the verifier use the same.
#ifndef GRADCUBE_CONTROL_PLAN_LOCAL_STAGE_H_
#define GRADCUBE_CONTROL_PLAN_LOCAL_STAGE_H_

#include <algorithm>
#include <cstdint>

#include "control/plan/base/placement.h"
#include "control/plan/collective_kind.h"
#include "control/plan/collective_layout.h"

namespace gradcube::control {

class LocalStage {
 public:
  // Of one trainer: there is nothing to do.
  LocalStage() = default;
  // trainers: on each server. server: its rank, as trainers see it. root: a trainer's rank, if the
  // kind has one. bytes: of the whole buffer, if rank-ordered a multiple of all trainers.
  LocalStage(unsigned trainers, Rank server, std::uint32_t servers, CollectiveKind kind, Rank root,
             std::uint64_t bytes)
      : trainers_(trainers), kind_(kind) {
    if (has_root(kind) && root / trainers == server) base_ = root % trainers;
    if (!is_rank_ordered(kind)) return;
    chunk_bytes_ = bytes / servers / trainers;
    first_chunk_ = std::uint64_t{server} * trainers * chunk_bytes_;
  }

  unsigned trainers() const { return trainers_; }
  bool alone() const { return trainers_ == 1; }
  // Whose buffer the plan works on: the root's, where it is one of them.
  unsigned base() const { return base_; }

  // Of a range that the first step takes up: what the trainer with this number has to give. Where
  // the kind reduces, everything, to be added by ascending number; else to be copied to the base.
  SegmentRange given(unsigned local, SegmentRange range) const {
    if (reduces(kind_)) return range;
    if (kind_ == CollectiveKind::all_gather && local != base_) return own_chunk(local, range);
    return {range.begin, 0};
  }

  // Of a range whose result is in the base's buffer: what the trainer with this number lacks.
  SegmentRange wanted(unsigned local, SegmentRange result) const {
    if (local == base_ || kind_ == CollectiveKind::reduce) return {result.begin, 0};
    if (kind_ == CollectiveKind::reduce_scatter) return own_chunk(local, result);
    return result;
  }

 private:
  SegmentRange own_chunk(unsigned local, SegmentRange range) const {
    const std::uint64_t chunk = first_chunk_ + local * chunk_bytes_;
    const std::uint64_t begin = std::max(range.begin, chunk);
    const std::uint64_t end = std::min(range.begin + range.bytes, chunk + chunk_bytes_);
    if (begin >= end) return {range.begin, 0};
    return {begin, static_cast<std::uint32_t>(end - begin)};
  }

  unsigned trainers_ = 1;
  CollectiveKind kind_ = CollectiveKind::all_reduce;
  unsigned base_ = 0;
  std::uint64_t chunk_bytes_ = 0;  // of one trainer, if rank-ordered
  std::uint64_t first_chunk_ = 0;  // where that of the server's first trainer begins
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_LOCAL_STAGE_H_
