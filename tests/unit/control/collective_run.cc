#include "tests/unit/control/collective_run.h"

#include <algorithm>
#include <stdexcept>

namespace gradcube::control {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

std::uint32_t stage_length(const CollectiveLayout& layout, Stage stage, unsigned w) {
  return static_cast<std::uint32_t>(layout.end(stage, w) - layout.first(stage, w));
}

}  // namespace

CollectiveRun::CollectiveRun(const Plan& plan, const CollectiveShape& shape,
                             std::uint32_t segment_bytes)
    : plan_(plan), shape_(shape) {
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      const ThreadSchedule schedule(plan, rank, thread);
      members_.push_back({schedule, CollectiveLayout(schedule, shape, segment_bytes,
                                                     CollectiveLayout::StageSequences{})});
    }
  }
  find_segments();
  begin();
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      for (unsigned step = 0; step < plan.steps(thread); ++step) {
        run_step(thread, stage, plan.mirrored(thread, stage, step));
      }
    }
  }
}

// All segments of the last step's receive streams: they are the whole buffer.
void CollectiveRun::find_segments() {
  for (const Member& at : members_) {
    const unsigned last = at.schedule.last_step();
    if (!plan_.owns(at.schedule.rank(), at.schedule.thread())) continue;
    for (std::uint32_t q = 0; q < at.layout.round_length(last); ++q) {
      const SegmentRange segment = at.layout.segment(at.schedule, last, 0, q);
      add_segments(segment);
    }
  }
  std::sort(segments_.begin(), segments_.end(),
            [](const SegmentRange& a, const SegmentRange& b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (const SegmentRange& segment : segments_) {
    require(segment.begin == at, "the segments do not follow each other");
    segment_at_.emplace(segment.begin, segment_at_.size());
    at += segment.bytes;
  }
  require(at == shape_.bytes, "the segments are not the whole buffer");
}

// Cut where a chunk ends, if the buffer is chunks.
void CollectiveRun::add_segments(SegmentRange all) {
  while (all.bytes != 0) {
    SegmentRange first = all;
    if (is_rank_ordered(shape_.kind)) {
      const std::uint64_t chunk_bytes = shape_.bytes / plan_.ranks();
      const std::uint64_t left = (all.begin / chunk_bytes + 1) * chunk_bytes - all.begin;
      first.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(all.bytes, left));
    }
    segments_.push_back(first);
    all = {all.begin + first.bytes, all.bytes - first.bytes};
  }
}

void CollectiveRun::begin() {
  counts_.assign(std::size_t{plan_.ranks()} * segments_.size() * plan_.ranks(), 0);
  for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      bool is_input = true;
      if (shape_.kind == CollectiveKind::all_gather) is_input = chunk(segments_[s]) == rank;
      if (shape_.kind == CollectiveKind::broadcast) is_input = rank == shape_.root;
      counts_of(rank, s)[rank] = is_input ? 1 : kGarbage;
    }
  }
}

// Only where steps double does a rank send what it adds to in the same round.
void CollectiveRun::run_step(unsigned thread, Stage stage, unsigned w) {
  for (unsigned round = 0; round < member(0, thread).schedule.step(w).rounds; ++round) {
    before_ = counts_;
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      const Member& from = member(rank, thread);
      const Offsets& targets = from.schedule.step(w).targets_in(stage);
      for (unsigned r = targets.first; r < targets.end; ++r) {
        exchange(from, member(from.schedule.peer(w, r), thread), stage, w, round);
      }
    }
  }
}

void CollectiveRun::exchange(const Member& from, const Member& to, Stage stage, unsigned w,
                             unsigned round) {
  const unsigned to_offset = from.schedule.offset_of_rank(w, to.schedule.rank());
  const unsigned from_offset = to.schedule.offset_of_rank(w, from.schedule.rank());
  require(to.schedule.step(w).sources_in(stage).contains(from_offset),
          "it receives from no such offset");
  const bool carries = from.layout.sends(from.schedule, stage, w, to_offset, round);
  require(carries == to.layout.receives(to.schedule, stage, w, from_offset, round),
          "the ends of a stream do not agree whether it carries");
  const std::uint32_t count = stage_length(from.layout, stage, w);
  require(count == stage_length(to.layout, stage, w), "the ends of a stream have other lengths");
  require((count > 0) == (plan_.has_root_step() || has_stage(shape_.kind, stage)),
          "a stage has streams if it runs");
  const std::uint32_t length = count / from.schedule.step(w).rounds;
  for (std::uint32_t q = round * length; q < (round + 1) * length; ++q) {
    const auto [r, at, sent_in] = from.layout.part_sent(from.schedule, stage, w, to_offset, q);
    const SegmentRange sent = from.layout.segment(from.schedule, w, r, at);
    const auto [s, to_at, taken_in] =
        to.layout.part_received(to.schedule, stage, w, from_offset, q);
    const SegmentRange taken = to.layout.segment(to.schedule, w, s, to_at);
    require(sent_in == round && taken_in == round, "a segment passes in another round");
    require(sent == taken, "the ends of a stream have other bytes");
    if (carries && sent.bytes != 0) pass(from, to, stage, w, sent);
  }
}

void CollectiveRun::pass(const Member& from, const Member& to, Stage stage, unsigned w,
                         const SegmentRange& sent) {
  const auto found = segment_at_.find(sent.begin);
  require(found != segment_at_.end(), "a segment begins within one of the buffer");
  std::uint64_t at = sent.begin;
  for (std::size_t s = found->second; at < sent.begin + sent.bytes; ++s) {
    if (!is_kept(to, stage, w, s, from)) pass(from, to, stage, s);
    at += segments_[s].bytes;
  }
  require(at == sent.begin + sent.bytes, "a segment ends within one of the buffer");
  bytes_sent_[static_cast<unsigned>(stage)] += sent.bytes;
}

// In the aggregation stage of an all-gather, a rank keeps what has not come from the side of the
// chunk's rank.
bool CollectiveRun::is_kept(const Member& to, Stage stage, unsigned w, std::size_t segment,
                            const Member& from) const {
  if (shape_.kind != CollectiveKind::all_gather || stage == Stage::broadcast) return false;
  const ThreadSchedule& schedule = to.schedule;
  const unsigned side = schedule.offset_of_rank(w, chunk(segments_[segment]));
  if (schedule.step(w).is_ring()) return side == 0;
  return side != schedule.offset_of_rank(w, from.schedule.rank());
}

void CollectiveRun::pass(const Member& from, const Member& to, Stage stage, std::size_t segment) {
  const std::uint8_t* have = before_.data() + place_of(from.schedule.rank(), segment);
  std::uint8_t* into = counts_of(to.schedule.rank(), segment);
  const bool adds = stage == Stage::aggregation && reduces(shape_.kind);
  for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
    into[rank] =
        static_cast<std::uint8_t>(adds ? std::min(255, into[rank] + have[rank]) : have[rank]);
  }
}

}  // namespace gradcube::control
