#include "control/plan/streams.h"

#include <fmt/format.h>

namespace gradcube::control {
namespace {

constexpr PieceId kNoPiece{UINT32_MAX, UINT32_MAX};

// One segment can hold the longest piece.
constexpr std::uint32_t kSegmentBytes = kMaxWeight * kUnitBytes;

}  // namespace

Streams::Streams(const Plan& plan) : plan_(plan), pieces_(plan.pieces(), kNoPiece) {
  const std::uint64_t units = std::uint64_t{plan.thread_part(0).of} * plan.ranks();
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      const ThreadSchedule schedule(plan, rank, thread);
      members_.push_back(
          {schedule, CollectiveLayout(schedule, {.bytes = units * kUnitBytes}, kSegmentBytes, {})});
      PieceId& piece = pieces_[number_at(members_.back(), schedule.last_step(), 0, 0)];
      if (piece != kNoPiece) {
        throw PlanError(fmt::format("thread {} of {} and of {} own the same bytes", thread,
                                    name(rank), name(piece.owner)));
      }
      piece = {thread, rank};
    }
  }
}

std::size_t Streams::number_at(const Member& member, unsigned w, unsigned r,
                               std::uint32_t q) const {
  const unsigned thread = member.schedule.thread();
  const std::uint64_t piece_bytes = plan_.thread(thread).weight * kUnitBytes;
  const std::uint64_t thread_begin =
      std::uint64_t{plan_.thread_part(thread).from} * plan_.ranks() * kUnitBytes;
  const SegmentRange range = member.layout.segment(member.schedule, w, r, q);
  const std::uint64_t number = (range.begin - thread_begin) / piece_bytes;
  if (range.bytes != piece_bytes || range.begin < thread_begin || number >= plan_.ranks() ||
      range.begin != thread_begin + number * piece_bytes) {
    throw PlanError(fmt::format("position {} of step {}, offset {}, is bytes {} to {}: no piece", q,
                                w, r, range.begin, range.begin + range.bytes));
  }
  return std::size_t{thread} * plan_.ranks() + number;
}

std::vector<PieceId> Streams::stream(const Member& member, unsigned w, unsigned r) const {
  std::vector<PieceId> pieces;
  // The broadcast stage of an all-reduce runs the same streams.
  const std::uint64_t first = member.layout.first(Stage::aggregation, w);
  for (std::uint64_t sequence = first; sequence < member.layout.end(Stage::aggregation, w);
       ++sequence) {
    pieces.push_back(piece_at(member, w, r, static_cast<std::uint32_t>(sequence - first)));
  }
  return pieces;
}

std::vector<Transfer> Streams::transfers(Rank rank, unsigned thread, Stage stage,
                                         unsigned step) const {
  if (step >= plan_.steps(thread)) return {};
  const Member& at = member(rank, thread);
  const unsigned w = plan_.mirrored(thread, stage, step);
  const std::vector<PieceId> own = stream(at, w, 0);
  std::vector<Transfer> result;
  for (unsigned r = 1; r <= step_pattern::peers(at.schedule.step(w).radix); ++r) {
    const Rank peer = at.schedule.peer(w, r);
    std::vector<PieceId> theirs = stream(at, w, r);
    if (stage == Stage::aggregation) {
      result.push_back({peer, std::move(theirs), own});
    } else {
      result.push_back({peer, own, std::move(theirs)});
    }
  }
  return result;
}

void Streams::check_dependencies() const {
  for (const Member& at : members_) {
    for (unsigned w = 0; w < at.schedule.steps(); ++w) {
      if (w > 0) check_steps(at, w);
      check_results(at, w);
    }
  }
}

// That every segment of step w's streams waits for its own partial sum of the step before.
void Streams::check_steps(const Member& at, unsigned w) const {
  const ThreadSchedule& schedule = at.schedule;
  for (unsigned r = 0; r < schedule.step(w).radix; ++r) {
    for (std::uint32_t q = 0; q < schedule.step(w).pieces; ++q) {
      const std::uint32_t before = schedule.at_previous_step(w, r, q);
      const ThreadSchedule::NextStep next = schedule.at_next_step(w - 1, before);
      if (piece_at(at, w - 1, 0, before) != piece_at(at, w, r, q) || next.offset != r ||
          next.position != q) {
        throw PlanError(fmt::format(
            "thread {} of {}: position {} of step {}, offset {}, waits for another piece",
            schedule.thread(), name(schedule.rank()), q, w, r));
      }
    }
  }
}

// That every result that step w's receive stream broadcasts is known: the rank's own, or one that a
// later aggregation step, which is an earlier broadcast step, has brought back.
void Streams::check_results(const Member& at, unsigned w) const {
  const ThreadSchedule& schedule = at.schedule;
  for (std::uint32_t q = 0; q < schedule.step(w).pieces; ++q) {
    const PieceId piece = piece_at(at, w, 0, q);
    const ThreadSchedule::ResultSource source = schedule.result_source(w, q);
    const bool right_place = source.own ? piece.owner == schedule.rank() && source.offset == 0
                                        : source.offset != 0 && source.step > w;
    if (!right_place || piece_at(at, source.step, source.offset, source.position) != piece) {
      throw PlanError(
          fmt::format("thread {} of {}: the result at position {} of step {} is "
                      "expected from the wrong place",
                      schedule.thread(), name(schedule.rank()), q, w));
    }
  }
}

}  // namespace gradcube::control
