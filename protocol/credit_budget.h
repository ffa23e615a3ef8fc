// How much a port may have granted at once, in segments or in what its user counts (credit.h): as
// much as the receiver allows at most, and less while the network says that it is too much.
//
// Two signals shrink the budget:
//
//   marks   the share of arriving segments that a switch has marked (ECN's CE), smoothed over the
//           rounds, as DCTCP does (Alizadeh et al., SIGCOMM 2010; RFC 8257). A round in which there
//           were marks multiplies the budget by 1 - share / 2, and takes at least one segment.
//   losses  the share of segments that arrived only when they were sent again. Up to 2 % is taken
//           for damage, which sending less does not mend; more halves the budget. So a congested
//           switch that does not mark is heeded, too (BBRv2 draws the line at the same place).
//
// A round without a signal adds one segment. A round is as many arrivals as the budget has
// segments: about one round trip of a port that is kept busy. Delay is no signal here. What a
// receiver can measure, from the grant to the arrival, is mostly the time that the segment waited
// at its sender for its turn or its data.
//
// One port of one engine; no allocation, no clock.
#ifndef GRADCUBE_PROTOCOL_CREDIT_BUDGET_H_
#define GRADCUBE_PROTOCOL_CREDIT_BUDGET_H_

#include <algorithm>
#include <cstdint>

namespace gradcube::protocol {

class CreditBudget {
 public:
  // A port that has less granted than this would stop and wait for each segment.
  static constexpr std::uint64_t kLeast = 2;

  // most: in segments. A budget never has less than kLeast.
  explicit CreditBudget(std::uint64_t most) : most_(std::max(most, kLeast)), now_(most_) {}

  std::uint64_t segments() const { return now_; }
  std::uint64_t most() const { return most_; }

  // A segment has arrived for the first time. True if the budget has changed.
  bool on_arrival(bool marked, bool sent_again) { return on_arrival(marked, sent_again, now_); }
  // The same where a round has so many arrivals, of packets: of a segment that travels in several
  // all have arrived, and all are marked, but one was lost.
  bool on_arrival(bool marked, bool sent_again, std::uint64_t round, std::uint64_t packets = 1) {
    arrived_ += packets;
    marked_ += marked ? packets : 0;
    sent_again_ += sent_again ? 1 : 0;
    return arrived_ >= std::max(round, kShortestRound) && end_round();
  }

 private:
  // Below this a share says nothing.
  static constexpr std::uint64_t kShortestRound = 8;
  // Parts of a whole: shares are fixed-point numbers.
  static constexpr std::uint64_t kWhole = 1U << 16;
  // DCTCP's g: how much of the smoothed share a round replaces.
  static constexpr std::uint64_t kRoundsSmoothed = 16;
  // A loss of one in so many is damage. Counted over as many segments at least.
  static constexpr std::uint64_t kDamage = 50;

  bool end_round();
  bool loses_too_much();

  std::uint64_t most_;
  std::uint64_t now_;
  std::uint64_t share_marked_ = 0;  // smoothed, of kWhole
  std::uint64_t arrived_ = 0;       // in this round, as the next two
  std::uint64_t marked_ = 0;
  std::uint64_t sent_again_ = 0;
  // Since losses were judged last.
  std::uint64_t judged_arrivals_ = 0;
  std::uint64_t judged_losses_ = 0;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CREDIT_BUDGET_H_
