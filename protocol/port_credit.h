// What all engines of a server together have granted through one of its ports.
//
// The switch has one queue for the port, and one engine may need it while another has nothing to
// receive. So the engines share the port's budget: an engine may use all of it as long as no other
// wants some. Engines that want some get equal parts. But if they want it for the same job, those
// of the lowest rank (grant_round.h) come first, and each of the others has a single segment: the
// job's later steps must not get ahead of its earlier ones, or its threads would get out of step.
// An engine names one rank: the lowest of the first of its jobs. What slow start (credit.h) holds
// back is wanted, too.
//
// Each engine names the budget that the network leaves it (credit_budget.h), most() at most. Its
// take() does not raise the sum above this, whichever engines call at the same time. One exception:
// an engine that has nothing may have one segment as long as the sum is below most(). Else it would
// have to wait while the others keep the sum at their own higher budgets. The parts are
// approximate: they follow from what the engines knew of each other a moment ago.
//
// Threads: any engine's, at any time. Each engine has a number of its own below kMostEngines.
#ifndef GRADCUBE_PROTOCOL_PORT_CREDIT_H_
#define GRADCUBE_PROTOCOL_PORT_CREDIT_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "protocol/grant_round.h"
#include "protocol/time.h"

namespace gradcube::protocol {

struct CreditSettings {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t budget_bytes = kUnlimited;  // at most
  // Without a budget: the segments of a flow's window, of which the network may leave less
  // (credit.h); 0: windows are whole whatever it does.
  std::uint64_t window_that_shrinks = 0;
  // In how many a full segment passes the network. What shrinks that window counts them.
  std::uint32_t packets_of_segment = 1;
  // Bytes of one segment in the switch, all headers included.
  std::uint32_t segment_bytes = 1500;
  // What one flow gets in one round (credit.h), but at most a quarter of the budget and at least
  // PortCredit::kLeastRound segments.
  std::uint64_t round_bytes = 0;
  // What is granted to a flow of which nothing has come for so long is not counted any more while
  // others want it: its sender cannot use it, or does not want to.
  Nanoseconds lease = 20 * kMillisecond;
};

class PortCredit {
 public:
  static constexpr unsigned kMostEngines = 64;
  // With one the segments on their way would never become more.
  static constexpr std::uint64_t kLeastRound = 2;

  explicit PortCredit(const CreditSettings& settings)
      : unlimited_(settings.budget_bytes == CreditSettings::kUnlimited),
        window_that_shrinks_(unlimited_ ? settings.window_that_shrinks : 0),
        packets_of_segment_(settings.packets_of_segment),
        segment_bytes_(settings.segment_bytes),
        lease_(settings.lease) {
    assert(segment_bytes_ != 0);
    most_ = settings.budget_bytes / segment_bytes_;
    round_ = std::max(kLeastRound, std::min(settings.round_bytes / segment_bytes_, most_ / 4));
  }

  bool unlimited() const { return unlimited_; }
  std::uint64_t window_that_shrinks() const { return window_that_shrinks_; }
  std::uint32_t packets_of_segment() const { return packets_of_segment_; }
  // Of a segment of so many bytes.
  std::uint32_t packets_of(std::uint32_t bytes) const {
    if (bytes >= segment_bytes_) return packets_of_segment_;
    return 1 + static_cast<std::uint32_t>(std::uint64_t{bytes} * packets_of_segment_ /
                                          (segment_bytes_ + 1));
  }
  std::uint32_t segment_bytes() const { return segment_bytes_; }
  Nanoseconds lease() const { return lease_; }
  // The budget, in segments, while the network does not say that it is too much.
  std::uint64_t most() const { return most_; }
  // The most that a flow gets in one round, in segments.
  std::uint64_t round() const { return round_; }

  // Segments that are granted and have not arrived.
  std::uint64_t outstanding() const { return outstanding_.load(std::memory_order_relaxed); }

  // Whether there is something for an engine that has `has` segments already, but for its part.
  bool has_room(std::uint64_t has, std::uint64_t budget) const {
    return room(outstanding(), has, budget) != 0;
  }

  // Takes up to `wanted` segments out of the budget for an engine that has `has` of them already,
  // and wants them for flows of this rank or a higher one; returns how many. Less if others want
  // some too, and this engine has its part.
  std::uint64_t take(unsigned engine, CreditRank rank, std::uint64_t has, std::uint64_t wanted,
                     std::uint64_t budget) {
    const RankWords own = words_of(rank);
    store(engine, own);
    const std::uint64_t others = want_.load(std::memory_order_relaxed) & ~bit(engine);
    if (others != 0) {
      const std::uint64_t part = part_of(others, own, budget);
      wanted = std::min(wanted, part > has ? part - has : 0);
    }
    std::uint64_t before = outstanding();
    std::uint64_t taken = 0;
    do {
      taken = std::min(wanted, room(before, has, budget));
      if (taken == 0) return 0;
    } while (
        !outstanding_.compare_exchange_weak(before, before + taken, std::memory_order_relaxed));
    return taken;
  }
  // What was taken has arrived, or is not expected any more.
  void give_back(std::uint64_t segments) {
    outstanding_.fetch_sub(segments, std::memory_order_relaxed);
  }

  bool anyone_wants() const { return want_.load(std::memory_order_relaxed) != 0; }
  // Whether the engine would take more if there were more.
  void set_wanting(unsigned engine, bool wanting) {
    if (wanting) {
      want_.fetch_or(bit(engine), std::memory_order_relaxed);
    } else {
      want_.fetch_and(~bit(engine), std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::uint64_t bit(unsigned engine) { return std::uint64_t{1} << engine; }

  // A rank in two words, so that engines can read each other's without a lock. The two may belong
  // to different ranks: then one turn goes to the wrong engine.
  struct RankWords {
    std::uint64_t job;
    std::uint64_t rank;
  };
  // Ages wrap after 2^32 collectives; lanes and steps have their bits (wire.h).
  static constexpr RankWords words_of(const CreditRank& rank) {
    return {rank.job, std::uint64_t{rank.lane} << 48 | (rank.age & UINT32_MAX) << 16 | rank.step};
  }
  void store(unsigned engine, const RankWords& words) {
    ranks_[engine].job.store(words.job, std::memory_order_relaxed);
    ranks_[engine].rank.store(words.rank, std::memory_order_relaxed);
  }

  std::uint64_t room(std::uint64_t sum, std::uint64_t has, std::uint64_t budget) const {
    if (sum < budget) return budget - sum;
    return has == 0 && sum < most_ ? 1 : 0;
  }

  // What an engine that wants some for this rank may have while these others want some.
  std::uint64_t part_of(std::uint64_t others, const RankWords& own, std::uint64_t budget) const {
    std::uint64_t parts = 1;
    for (; others != 0; others &= others - 1) {
      const auto& theirs = ranks_[static_cast<std::size_t>(std::countr_zero(others))];
      const std::uint64_t rank = theirs.rank.load(std::memory_order_relaxed);
      const bool same_job = theirs.job.load(std::memory_order_relaxed) == own.job;
      if (same_job && rank < own.rank) return 1;
      // Those behind this one have a single segment.
      if (!same_job || rank == own.rank) ++parts;
    }
    return (budget + parts - 1) / parts;
  }

  bool unlimited_;
  std::uint64_t window_that_shrinks_;
  std::uint32_t packets_of_segment_;
  std::uint32_t segment_bytes_;
  Nanoseconds lease_;
  std::uint64_t most_ = 0;
  std::uint64_t round_ = kLeastRound;
  alignas(64) std::atomic<std::uint64_t> outstanding_{0};
  std::atomic<std::uint64_t> want_{0};
  // Of the engines that want some: for what.
  struct SharedRank {
    std::atomic<std::uint64_t> job{0};
    std::atomic<std::uint64_t> rank{0};
  };
  std::array<SharedRank, kMostEngines> ranks_{};
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_PORT_CREDIT_H_
