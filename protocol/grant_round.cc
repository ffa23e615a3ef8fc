#include "protocol/grant_round.h"

#include <algorithm>
#include <tuple>

namespace gradcube::protocol {

CreditRank GrantRound::first_rank() const {
  return std::min_element(claims_.begin(), claims_.end(),
                          [](const Claim& a, const Claim& b) { return a.rank < b.rank; })
      ->rank;
}

// By job, rank, and turn. Unsigned numbers wrap, so flows before next_flow_ come last.
void GrantRound::sort() {
  std::sort(claims_.begin(), claims_.end(), [this](const Claim& a, const Claim& b) {
    const auto order = a.rank <=> b.rank;
    return order != 0 ? order < 0 : a.flow - next_flow_ < b.flow - next_flow_;
  });
  jobs_.clear();
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    if (i == 0 || claims_[i].rank.job != claims_[i - 1].rank.job) jobs_.push_back({i, i, i});
    jobs_.back().end = i + 1;
  }
}

std::size_t GrantRound::job_in_turn() const {
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    if (claims_[jobs_[job].begin].rank.job >= next_job_) return job;
  }
  return 0;
}

// False: all claims of the job have what they want.
bool GrantRound::grant_one(JobClaims& job) {
  while (job.begin < job.end) {
    std::size_t past = job.begin;
    while (past < job.end && claims_[past].rank == claims_[job.begin].rank) ++past;
    for (std::size_t tried = job.begin; tried < past; ++tried) {
      Claim& claim = claims_[job.at];
      job.at = job.at + 1 == past ? job.begin : job.at + 1;
      if (claim.granted == claim.wanted) continue;
      ++claim.granted;
      next_flow_ = claim.flow + 1;
      return true;
    }
    job.begin = past;
    job.at = past;
  }
  return false;
}

std::uint64_t GrantRound::grant_to(JobClaims& job, std::uint64_t segments) {
  std::uint64_t granted = 0;
  while (granted < segments && grant_one(job)) ++granted;
  return granted;
}

void GrantRound::hand_out(std::uint64_t segments) {
  sort();
  std::size_t turn = job_in_turn();
  if (jobs_.empty() || claims_[jobs_[turn].begin].rank.job != next_job_) turn_left_ = 0;
  for (std::size_t done = 0; segments > 0 && done < jobs_.size();) {
    const CreditRank& whose = claims_[jobs_[turn].end - 1].rank;
    if (turn_left_ == 0) turn_left_ = whose.weight;
    next_job_ = whose.job;
    const std::uint64_t granted = grant_to(jobs_[turn], std::min(turn_left_, segments));
    segments -= granted;
    turn_left_ -= granted;
    if (segments == 0 && turn_left_ != 0) return;
    // Its turn is over, or it wants no more.
    done = granted == 0 ? done + 1 : 0;
    turn_left_ = 0;
    next_job_ = whose.job + 1;
    turn = turn + 1 == jobs_.size() ? 0 : turn + 1;
  }
}

}  // namespace gradcube::protocol
