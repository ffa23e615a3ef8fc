#include "protocol/grant_round.h"

#include <algorithm>
#include <tuple>

namespace gradcube::protocol {

CreditRank GrantRound::first_rank() const {
  return std::min_element(claims_.begin(), claims_.end(),
                          [](const Claim& a, const Claim& b) { return a.rank < b.rank; })
      ->rank;
}

// By job, rank, and turn.
void GrantRound::sort() {
  std::sort(claims_.begin(), claims_.end(), [this](const Claim& a, const Claim& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return std::tuple(served_[a.flow], a.flow) < std::tuple(served_[b.flow], b.flow);
  });
  jobs_.clear();
  for (std::size_t begin = 0; begin < claims_.size();) {
    std::size_t end = begin + 1;
    while (end < claims_.size() && claims_[end].rank.job == claims_[begin].rank.job) ++end;
    JobClaims& job = jobs_.emplace_back();
    job.end = end;
    begin_rank(job, begin);
    begin = end;
  }
}

void GrantRound::begin_rank(JobClaims& job, std::size_t begin) {
  job.at = begin;
  if (begin == job.end) return;
  const CreditRank& rank = claims_[begin].rank;
  std::size_t end = begin;
  for (; end < job.end && claims_[end].rank == rank; ++end) next_[end] = end + 1;
  next_[end - 1] = begin;
  job.before = end - 1;
  job.rank_end = end;
}

std::size_t GrantRound::job_in_turn() const {
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    if (whose(jobs_[job]).job >= next_job_) return job;
  }
  return 0;
}

// False: all claims of the job have what they want.
bool GrantRound::grant_one(JobClaims& job) {
  if (job.at == job.end) return false;
  Claim& claim = claims_[job.at];
  ++claim.granted;
  served_[claim.flow] = ++handed_out_;
  const std::size_t next = next_[job.at];
  if (claim.granted < claim.wanted) {
    job.before = job.at;
    job.at = next;
  } else if (next == job.at) {
    begin_rank(job, job.rank_end);
  } else {
    next_[job.before] = next;
    job.at = next;
  }
  return true;
}

std::uint64_t GrantRound::grant_to(JobClaims& job, std::uint64_t segments) {
  std::uint64_t granted = 0;
  while (granted < segments && grant_one(job)) ++granted;
  return granted;
}

void GrantRound::hand_out(std::uint64_t segments) {
  segments = std::min(segments, wanted_);
  if (segments == 0) return;
  sort();
  std::size_t turn = job_in_turn();
  if (whose(jobs_[turn]).job != next_job_) turn_left_ = 0;
  for (std::size_t done = 0; segments > 0 && done < jobs_.size();) {
    const CreditRank& job = whose(jobs_[turn]);
    if (turn_left_ == 0) turn_left_ = job.weight;
    next_job_ = job.job;
    const std::uint64_t granted = grant_to(jobs_[turn], std::min(turn_left_, segments));
    segments -= granted;
    turn_left_ -= granted;
    if (segments == 0 && turn_left_ != 0) return;
    // Its turn is over, or it wants no more.
    done = granted == 0 ? done + 1 : 0;
    turn_left_ = 0;
    next_job_ = job.job + 1;
    turn = turn + 1 == jobs_.size() ? 0 : turn + 1;
  }
}

}  // namespace gradcube::protocol
