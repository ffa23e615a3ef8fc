// Many jobs, one after another and all at once: jobs_at_once JOBS BYTES ROUNDS SOCKET...
//
// Each of JOBS jobs has a trainer on every SOCKET, and a thread that drives them. In a round each
// job makes one all-reduce of BYTES alone, one job after another; then all make one at the same
// time. Prints one JSON object with medians over the rounds, in seconds:
//
//   one_after_another  the sum of the jobs' times, each alone
//   at_once            from the common start to the end of the last job
//   job_median         the jobs' own times when at once: their median,
//   job_slowest        and the slowest

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "tests/bench/tenants/job_of_bench.h"

namespace gradcube::bench {
namespace {

struct Round {
  double one_after_another = 0;
  double at_once = 0;
  double job_median = 0;
  double job_slowest = 0;
};

// Fills in the figures of the jobs that work at the same time.
void all_at_once(std::deque<JobOfBench>& jobs, Round& round) {
  std::vector<double> seconds(jobs.size());
  std::exception_ptr failure;
  std::mutex failure_mutex;
  std::barrier start(static_cast<std::ptrdiff_t>(jobs.size() + 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        seconds[i] = jobs[i].allreduce();
      } catch (...) {
        const std::scoped_lock lock(failure_mutex);
        failure = std::current_exception();
      }
    });
  }
  start.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  for (std::thread& thread : threads) thread.join();
  round.at_once = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (failure) std::rethrow_exception(failure);
  round.job_median = median_of(seconds);
  round.job_slowest = *std::max_element(seconds.begin(), seconds.end());
}

Round run_round(std::deque<JobOfBench>& jobs) {
  Round round;
  for (JobOfBench& job : jobs) round.one_after_another += job.allreduce();
  all_at_once(jobs, round);
  return round;
}

double median_over(const std::vector<Round>& rounds, double Round::*figure) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(round.*figure);
  return median_of(values);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) {
    std::fprintf(stderr, "usage: jobs_at_once JOBS BYTES ROUNDS SOCKET...\n");
    return 2;
  }
  const std::size_t count = parse_number("JOBS", arguments[0]);
  const std::size_t bytes = parse_number("BYTES", arguments[1]);
  const std::size_t round_count = parse_number("ROUNDS", arguments[2]);
  prepare_for_many_jobs(bytes);
  std::deque<JobOfBench> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    jobs.emplace_back("at-once-" + std::to_string(i), std::span(arguments).subspan(3), bytes);
  }
  run_round(jobs);  // into the steady state
  std::vector<Round> rounds;
  for (std::size_t i = 0; i < round_count; ++i) rounds.push_back(run_round(jobs));
  std::printf(
      "{\"one_after_another\":%.9f,\"at_once\":%.9f,\"job_median\":%.9f,\"job_slowest\":%.9f}\n",
      median_over(rounds, &Round::one_after_another), median_over(rounds, &Round::at_once),
      median_over(rounds, &Round::job_median), median_over(rounds, &Round::job_slowest));
  return 0;
}

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  try {
    return gradcube::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jobs_at_once: %s\n", error.what());
    return 1;
  }
}
