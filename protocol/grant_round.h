// Who gets the next segments of credit, of the flows that ask for more than there is:
//
//   1. jobs in turn, each as many segments at a time as its weight says
//   2. within a job, the lowest rank first: lane, then age, then step. The sender of a flow serves
//      in the same order (flow_scheduler.h), but for the collectives behind its oldest one, whose
//      steps it serves together: what it is granted for a later one would wait there, while the
//      port could have had it
//   3. within a rank, the flows in turn, first the one that got something longest ago
//
// The turns of the jobs go on where the last round has ended. So no job starves, no flow starves
// among those of its rank, and equal demands get equal shares. Use: clear(), add() for each flow,
// hand_out(), then read the claims.
//
// hand_out() sorts the claims; beyond that it takes time in their number and that of the segments.
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

  // The weight is the job's.
  auto order() const { return std::tie(job, lane, age, step); }
  friend auto operator<=>(const CreditRank& a, const CreditRank& b) {
    return a.order() <=> b.order();
  }
  friend bool operator==(const CreditRank& a, const CreditRank& b) {
    return a.order() == b.order();
  }
};

class GrantRound {
 public:
  struct Claim {
    std::uint32_t flow = 0;
    CreditRank rank;
    std::uint64_t wanted = 0;
    std::uint64_t granted = 0;
  };

  // For the flows with numbers below `flows`.
  void reserve(std::size_t flows) {
    claims_.reserve(flows);
    next_.resize(flows);
    jobs_.reserve(flows);
    served_.resize(flows, 0);
  }

  void clear() {
    claims_.clear();
    wanted_ = 0;
  }
  // A flow that has no claim yet. wanted: in segments, not 0.
  void add(std::uint32_t flow, const CreditRank& rank, std::uint64_t wanted) {
    claims_.push_back({flow, rank, wanted, 0});
    wanted_ += wanted;
  }

  // By all claims together.
  std::uint64_t wanted() const { return wanted_; }
  // The lowest of the first job's claims. There must be one.
  CreditRank first_rank() const;

  // Grants so many segments, or as many as are wanted.
  void hand_out(std::uint64_t segments);
  std::span<const Claim> claims() const { return claims_; }

 private:
  // The claims of one job, by rank. Those of the lowest rank that still want something form a ring.
  struct JobClaims {
    std::size_t at;        // whose turn it is; `end` if all have what they want
    std::size_t before;    // the one before it in the ring
    std::size_t rank_end;  // the claims of the next rank begin here
    std::size_t end;       // those of the next job
  };

  void sort();
  void begin_rank(JobClaims& job, std::size_t begin);
  const CreditRank& whose(const JobClaims& job) const { return claims_[job.end - 1].rank; }
  std::size_t job_in_turn() const;
  std::uint64_t grant_to(JobClaims& job, std::uint64_t segments);
  bool grant_one(JobClaims& job);

  std::vector<Claim> claims_;
  std::vector<std::size_t> next_;  // in the ring of its rank, by claim
  std::vector<JobClaims> jobs_;
  std::vector<std::uint64_t> served_;  // by flow: the number of its last segment, of all
  std::uint64_t handed_out_ = 0;       // segments, ever
  std::uint64_t wanted_ = 0;
  std::uint32_t next_job_ = 0;
  std::uint64_t turn_left_ = 0;  // segments that next_job_ may still have in its turn
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_GRANT_ROUND_H_
