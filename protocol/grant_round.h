// Who gets the next segments of credit, of the flows that ask for more than there is:
//
//   1. jobs in turn, each as many segments at a time as its weight says
//   2. within a job, the lowest rank first: lane, then age, then step. The sender of a flow serves
//      in the same order (flow_scheduler.h): what it is granted for a later one would wait there,
//      while the port could have had it
//   3. within a rank, the flows in turn
//
// Turns go on where the last round has ended. So nobody starves, and equal demands get equal
// shares. Use: clear(), add() for each flow, hand_out(), then read the claims.
//
// One pool of one engine. reserve() allocates and belongs to set-up.
#ifndef GRADCUBE_PROTOCOL_GRANT_ROUND_H_
#define GRADCUBE_PROTOCOL_GRANT_ROUND_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace gradcube::protocol {

// Whose flow it is, and when its job serves it.
struct CreditRank {
  std::uint32_t job = 0;
  std::uint32_t weight = 1;  // the job's, at least 1
  // Lower ones are served first.
  std::uint16_t lane = 0;  // the lane's place by priority
  std::uint16_t step = 0;
  std::uint64_t age = 0;  // of what would be granted next: the number of its collective

  friend auto operator<=>(const CreditRank& a, const CreditRank& b) {
    return std::tie(a.job, a.lane, a.age, a.step) <=> std::tie(b.job, b.lane, b.age, b.step);
  }
  friend bool operator==(const CreditRank& a, const CreditRank& b) { return (a <=> b) == 0; }
};

class GrantRound {
 public:
  struct Claim {
    std::uint32_t flow = 0;
    CreditRank rank;
    std::uint64_t wanted = 0;
    std::uint64_t granted = 0;
  };

  void reserve(std::size_t flows) {
    claims_.reserve(flows);
    jobs_.reserve(flows);
  }

  void clear() {
    claims_.clear();
    wanted_ = 0;
  }
  // wanted: in segments, not 0.
  void add(std::uint32_t flow, const CreditRank& rank, std::uint64_t wanted) {
    claims_.push_back({flow, rank, wanted, 0});
    wanted_ += wanted;
  }

  // By all claims together.
  std::uint64_t wanted() const { return wanted_; }
  // Of all claims the one that comes first. There must be one.
  CreditRank first_rank() const;

  // Grants so many segments, or as many as are wanted.
  void hand_out(std::uint64_t segments);
  std::span<const Claim> claims() const { return claims_; }

 private:
  // The claims of one job: from `begin` to before `end`, by rank.
  struct JobClaims {
    std::size_t begin;
    std::size_t end;
    std::size_t at;  // whose turn it is, within the rank that begins at `begin`
  };

  void sort();
  std::size_t job_in_turn() const;
  std::uint64_t grant_to(JobClaims& job, std::uint64_t segments);
  bool grant_one(JobClaims& job);

  std::vector<Claim> claims_;
  std::vector<JobClaims> jobs_;
  std::uint64_t wanted_ = 0;
  std::uint32_t next_job_ = 0;
  std::uint64_t turn_left_ = 0;  // segments that next_job_ may still have in its turn
  std::uint32_t next_flow_ = 0;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_GRANT_ROUND_H_
