#include "control/plan/streams.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace gradcube::control {
namespace {

constexpr PieceId kNoPiece{UINT32_MAX, UINT32_MAX};

// Of a block that `depth` steps have divided: it is cut no further.
std::uint32_t block_bytes(const Plan& plan, unsigned thread, unsigned depth) {
  std::uint64_t bytes = plan.thread(thread).weight * kUnitBytes * plan.ranks();
  for (unsigned w = 0; w < std::min(depth, plan.steps(thread)); ++w) {
    bytes /= plan.step(thread, w).parts();
  }
  if (bytes > UINT32_MAX) {
    throw PlanError(fmt::format("thread {}: its blocks are too long to be written out, {} bytes",
                                thread, bytes));
  }
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

Streams::Streams(const Plan& plan, unsigned depth)
    : plan_(plan), pieces_(std::size_t{plan.threads()} * plan.ranks(), kNoPiece) {
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    segment_bytes_.push_back(block_bytes(plan, thread, depth));
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      const RankThread at = rank_thread(rank, thread);
      if (!plan.owns(rank, thread)) continue;
      const auto [first, end] = numbers_at(at, at.schedule.last_step(), 0, 0);
      PieceId& piece = pieces_[first];
      if (end != first + 1 || piece != kNoPiece) {
        throw PlanError(fmt::format("thread {} of {} and of {} own the same bytes", thread,
                                    name(rank), name(piece.owner)));
      }
      piece = {thread, rank};
    }
  }
}

Streams::RankThread Streams::rank_thread(Rank rank, unsigned thread) const {
  const std::uint64_t bytes = std::uint64_t{plan_.thread_part(0).of} * plan_.ranks() * kUnitBytes;
  const ThreadSchedule schedule(plan_, rank, thread);
  return {schedule, CollectiveLayout(schedule, {.bytes = bytes}, segment_bytes_[thread], {})};
}

std::pair<std::size_t, std::size_t> Streams::numbers_at(const RankThread& at, unsigned w,
                                                        unsigned r, std::uint32_t q) const {
  const unsigned thread = at.schedule.thread();
  const std::uint64_t piece_bytes = this->piece_bytes(thread);
  const std::uint64_t thread_begin =
      std::uint64_t{plan_.thread_part(thread).from} * plan_.ranks() * kUnitBytes;
  const SegmentRange range = at.layout.segment(at.schedule, w, r, q);
  const std::uint64_t number = (range.begin - thread_begin) / piece_bytes;
  const std::uint64_t count = range.bytes / piece_bytes;
  if (count == 0 || range.bytes != count * piece_bytes || range.begin < thread_begin ||
      number + count > plan_.pieces(thread) || range.begin != thread_begin + number * piece_bytes) {
    throw PlanError(fmt::format("position {} of step {}, offset {}, is bytes {} to {}: no piece", q,
                                w, r, range.begin, range.begin + range.bytes));
  }
  const std::size_t first = std::size_t{thread} * plan_.ranks() + number;
  return {first, first + count};
}

std::vector<PieceId> Streams::pieces_at(const RankThread& at, unsigned w, unsigned r,
                                        std::uint32_t q) const {
  const auto [first, end] = numbers_at(at, w, r, q);
  return {pieces_.begin() + static_cast<std::ptrdiff_t>(first),
          pieces_.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<PieceId> Streams::stream(const RankThread& at, End end, Stage stage, unsigned w,
                                     unsigned r, unsigned round) const {
  const auto& [schedule, layout] = at;
  std::vector<PieceId> pieces;
  // Of an all-reduce at this depth, a block is one segment.
  const std::uint32_t length = layout.round_length(w);
  for (std::uint32_t q = round * length; q < (round + 1) * length; ++q) {
    const CollectiveLayout::Part part = end == End::sender
                                            ? layout.part_sent(schedule, stage, w, r, q)
                                            : layout.part_received(schedule, stage, w, r, q);
    const std::vector<PieceId> here = pieces_at(at, w, part.offset, part.position);
    pieces.insert(pieces.end(), here.begin(), here.end());
  }
  return pieces;
}

std::vector<Transfer> Streams::transfers(Rank rank, unsigned thread, Stage stage,
                                         unsigned step) const {
  if (step >= plan_.steps(thread)) return {};
  const RankThread at = rank_thread(rank, thread);
  const unsigned w = plan_.mirrored(thread, stage, step);
  const ScheduleStep& of = at.schedule.step(w);
  std::vector<Transfer> result;
  const unsigned exchanges = of.is_ring() ? std::min(of.peers, 1U) : of.peers;  // in a round
  for (unsigned round = 0; round < of.rounds; ++round) {
    for (unsigned i = 0; i < exchanges; ++i) {
      const unsigned r = of.offset_of_peer(i);
      const unsigned source = std::max(r, of.first_sent);
      if (!of.targets_in(stage).contains(r) && !of.sources_in(stage).contains(source)) continue;
      Transfer& transfer = result.emplace_back();
      transfer.peer = at.schedule.peer(w, r);
      transfer.source = at.schedule.peer(w, source);
      transfer.round = round;
      if (of.targets_in(stage).contains(r)) {
        transfer.send = stream(at, End::sender, stage, w, r, round);
      }
      if (of.sources_in(stage).contains(source)) {
        transfer.receive = stream(at, End::receiver, stage, w, source, round);
      }
    }
  }
  return result;
}

std::vector<PieceId> Streams::exchanged(End end, Rank rank, unsigned thread, Stage stage,
                                        unsigned step, Rank peer, unsigned round) const {
  const RankThread at = rank_thread(rank, thread);
  const unsigned w = plan_.mirrored(thread, stage, step);
  const unsigned r = at.schedule.offset_of_rank(w, peer);
  const ScheduleStep& of = at.schedule.step(w);
  const Offsets& peers = end == End::sender ? of.targets_in(stage) : of.sources_in(stage);
  return peers.contains(r) ? stream(at, end, stage, w, r, round) : std::vector<PieceId>();
}

void Streams::check_exchanges(Rank rank) const {
  for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
    for (unsigned step = 0; step < plan_.steps(thread); ++step) {
      check_exchanges(rank, thread, Stage::aggregation, step);
      check_exchanges(rank, thread, Stage::broadcast, step);
    }
  }
}

void Streams::check_exchanges(Rank rank, unsigned thread, Stage stage, unsigned step) const {
  const auto same = [](const PieceSet& set, std::vector<PieceId> pieces) {
    std::vector<PieceId> members;
    set.for_each([&](PieceId piece) { members.push_back(piece); });
    std::sort(pieces.begin(), pieces.end());
    return members == pieces;
  };
  const std::vector<Exchange> exchanges = plan_.exchanges(rank, thread, stage, step);
  const std::vector<Transfer> all = transfers(rank, thread, stage, step);
  bool agree = exchanges.size() == all.size();
  for (const Transfer& transfer : all) {
    const auto exchange = std::find_if(exchanges.begin(), exchanges.end(), [&](const Exchange& e) {
      return e.peer == transfer.peer && e.round == transfer.round;
    });
    agree = agree && exchange != exchanges.end() && exchange->source == transfer.source &&
            same(exchange->send, transfer.send) && same(exchange->receive, transfer.receive);
  }
  if (!agree) {
    throw PlanError(fmt::format("{} step {}, thread {}: the streams of {} are not its exchanges",
                                stage_name(stage), step, thread, name(rank)));
  }
}

void Streams::check_dependencies(Rank rank) const {
  for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
    const RankThread at = rank_thread(rank, thread);
    for (unsigned w = 0; w < at.schedule.steps(); ++w) {
      if (w > 0) check_steps(at, w);
      if (!plan_.doubles()) check_results(at, w);
    }
  }
}

// That every segment of step w's streams waits for its own partial sum of the step before.
void Streams::check_steps(const RankThread& at, unsigned w) const {
  const ThreadSchedule& schedule = at.schedule;
  const StreamPositions& positions = at.layout.positions();
  const ScheduleStep& step = schedule.step(w);
  for (unsigned r = step.sums ? 0 : step.send_streams.first; r < step.send_streams.end; ++r) {
    for (std::uint32_t q = 0; q < positions.blocks(w); ++q) {
      const std::uint32_t before = positions.at_previous_step(w, r, q);
      const StreamPositions::NextStep next = positions.at_next_step(w - 1, before);
      const auto [first, end] = numbers_at(at, w, r, q);
      const auto [first_before, end_before] = numbers_at(at, w - 1, 0, before);
      const bool all_of_it = first == first_before && end == end_before;
      if (first < first_before || end > end_before ||
          next.divided == (all_of_it && !plan_.doubles()) || (!next.divided && next.offset != r) ||
          next.position != q) {
        throw PlanError(fmt::format(
            "thread {} of {}: position {} of step {}, offset {}, waits for another piece",
            schedule.thread(), name(schedule.rank()), q, w, r));
      }
    }
  }
}

// What a result source names, if it lies after step w.
std::vector<PieceId> Streams::results_from(const RankThread& at, unsigned w,
                                           const StreamPositions::ResultSource& source) const {
  const ThreadSchedule& schedule = at.schedule;
  if (!source.own) {
    if (source.offset == 0 || source.step <= w) return {};
    return pieces_at(at, source.step, source.offset, source.position);
  }
  std::vector<PieceId> pieces;
  if (schedule.step(schedule.last_step()).sums) {
    pieces = pieces_at(at, schedule.last_step(), 0, source.position);
    if (pieces.front().owner != schedule.rank()) return {};
  }
  if (source.step <= w) return {};
  for (unsigned u = source.step; u < schedule.steps(); ++u) {
    const Offsets& streams = schedule.step(u).send_streams;
    for (unsigned r = streams.first; r < streams.end; ++r) {
      const std::vector<PieceId> more = pieces_at(at, u, r, source.position);
      pieces.insert(pieces.end(), more.begin(), more.end());
    }
  }
  return pieces;
}

// That every result that step w's receive stream broadcasts is known: the rank's own, or one that a
// later aggregation step, which is an earlier broadcast step, has brought back.
void Streams::check_results(const RankThread& at, unsigned w) const {
  if (!at.schedule.step(w).sums) return;
  const StreamPositions& positions = at.layout.positions();
  for (std::uint32_t q = 0; q < positions.blocks(w); ++q) {
    std::vector<PieceId> needed = pieces_at(at, w, 0, q);
    std::vector<PieceId> known = results_from(at, w, positions.result_source(w, q));
    std::sort(needed.begin(), needed.end());
    std::sort(known.begin(), known.end());
    if (needed == known) continue;
    throw PlanError(
        fmt::format("thread {} of {}: the result at position {} of step {} is "
                    "expected from the wrong place",
                    at.schedule.thread(), name(at.schedule.rank()), q, w));
  }
}

void Streams::check_first_step() const {
  if (plan_.doubles()) return;
  for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
    std::vector<PieceId> all;
    std::copy_if(pieces_.begin(), pieces_.end(), std::back_inserter(all),
                 [thread](PieceId piece) { return piece.thread == thread; });
    std::sort(all.begin(), all.end());
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      std::vector<PieceId> taken_up;
      std::set<std::pair<unsigned, PieceId>> added_to;  // by round
      for (const Transfer& transfer : transfers(rank, thread, Stage::aggregation, 0)) {
        if (transfer.round == 0) {
          taken_up.insert(taken_up.end(), transfer.send.begin(), transfer.send.end());
        }
        for (const PieceId piece : transfer.receive) added_to.emplace(transfer.round, piece);
      }
      for (const auto& [round, piece] : added_to) taken_up.push_back(piece);
      std::sort(taken_up.begin(), taken_up.end());
      if (taken_up == all) continue;
      throw PlanError(
          fmt::format("the first step of thread {} takes up other pieces than each "
                      "once at {}",
                      thread, name(rank)));
    }
  }
}

}  // namespace gradcube::control
