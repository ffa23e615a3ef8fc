#include "control/plan/streams.h"

#include <fmt/format.h>

namespace gradcube::control {
namespace {

constexpr PieceId kNoPiece{UINT32_MAX, UINT32_MAX};

}  // namespace

Streams::Streams(const Plan& plan) : plan_(plan), piece_of_unit_(plan.pieces(), kNoPiece) {
  const std::uint64_t bytes = plan.pieces() * kUnitBytes;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (ServerId server = 0; server < plan.servers(); ++server) {
      const ThreadSchedule schedule(plan, server, thread);
      members_.push_back({schedule, CollectiveLayout(schedule, bytes, kUnitBytes, {})});
      const std::size_t unit = unit_at(members_.back(), schedule.last_step(), 0, 0);
      if (piece_of_unit_[unit] != kNoPiece) {
        throw PlanError(fmt::format("thread {} of {} and of {} own the same bytes", thread,
                                    plan.space().text(server),
                                    plan.space().text(piece_of_unit_[unit].owner)));
      }
      piece_of_unit_[unit] = {thread, server};
    }
  }
}

std::size_t Streams::unit_at(const Member& member, unsigned w, unsigned r, std::uint32_t q) const {
  const SegmentRange range = member.layout.segment(member.schedule, w, r, q);
  const std::uint64_t unit = range.begin / kUnitBytes;
  if (range.bytes != kUnitBytes || range.begin % kUnitBytes != 0 || unit >= plan_.pieces()) {
    throw PlanError(fmt::format("position {} of step {}, offset {}, is bytes {} to {}: no piece", q,
                                w, r, range.begin, range.begin + range.bytes));
  }
  return unit;
}

std::vector<PieceId> Streams::stream(const Member& member, unsigned w, unsigned r) const {
  std::vector<PieceId> pieces;
  for (std::uint64_t sequence = member.layout.first(w); sequence < member.layout.end(w);
       ++sequence) {
    pieces.push_back(
        piece_at(member, w, r, static_cast<std::uint32_t>(sequence - member.layout.first(w))));
  }
  return pieces;
}

std::vector<Transfer> Streams::transfers(ServerId server, unsigned thread, Stage stage,
                                         unsigned step) const {
  const Member& at = member(server, thread);
  const unsigned w = plan_.mirrored(stage, step);
  const std::vector<PieceId> own = stream(at, w, 0);
  std::vector<Transfer> result;
  for (unsigned r = 1; r < at.schedule.step(w).radix; ++r) {
    const ServerId peer = plan_.peer(server, thread, w, at.schedule.digit_at_offset(w, r));
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
  for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
    for (ServerId server = 0; server < plan_.servers(); ++server) {
      const Member& at = member(server, thread);
      for (unsigned w = 0; w < at.schedule.steps(); ++w) {
        if (w > 0) check_steps(server, at, w);
        check_results(server, at, w);
      }
    }
  }
}

// That every segment of step w's streams waits for its own partial sum of the step before.
void Streams::check_steps(ServerId server, const Member& at, unsigned w) const {
  const ThreadSchedule& schedule = at.schedule;
  for (unsigned r = 0; r < schedule.step(w).radix; ++r) {
    for (std::uint32_t q = 0; q < schedule.step(w).pieces; ++q) {
      const std::uint32_t before = schedule.at_previous_step(w, r, q);
      const ThreadSchedule::NextStep next = schedule.at_next_step(w - 1, before);
      if (piece_at(at, w - 1, 0, before) != piece_at(at, w, r, q) || next.offset != r ||
          next.position != q) {
        throw PlanError(fmt::format(
            "thread {} of {}: position {} of step {}, offset {}, waits for another piece",
            schedule.thread(), plan_.space().text(server), q, w, r));
      }
    }
  }
}

// That every result that step w's receive stream broadcasts is known: the server's own, or one that
// a later aggregation step, which is an earlier broadcast step, has brought back.
void Streams::check_results(ServerId server, const Member& at, unsigned w) const {
  const ThreadSchedule& schedule = at.schedule;
  for (std::uint32_t q = 0; q < schedule.step(w).pieces; ++q) {
    const PieceId piece = piece_at(at, w, 0, q);
    const ThreadSchedule::ResultSource source = schedule.result_source(w, q);
    const bool right_place = source.own ? piece.owner == server && source.offset == 0
                                        : source.offset != 0 && source.step > w;
    if (!right_place || piece_at(at, source.step, source.offset, source.position) != piece) {
      throw PlanError(
          fmt::format("thread {} of {}: the result at position {} of step {} is "
                      "expected from the wrong place",
                      schedule.thread(), plan_.space().text(server), q, w));
    }
  }
}

}  // namespace gradcube::control
