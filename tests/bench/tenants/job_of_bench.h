// One job on a running cluster, with a trainer on every server, all driven by one thread. Unlike
// `gradcube perf`, which has a thread per trainer, it can have dozens of jobs beside each other
// without hundreds of threads.
//
// Buffers are zeros: what is added does not matter, and sums of zeros stay zeros however often they
// are added. Failures are thrown, as gradcube::Error.
//
// Threads: a job is used by one thread at a time; different jobs by different threads.
#ifndef GRADCUBE_TESTS_BENCH_TENANTS_JOB_OF_BENCH_H_
#define GRADCUBE_TESTS_BENCH_TENANTS_JOB_OF_BENCH_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "gradcube/gradcube.hpp"

namespace gradcube::bench {

// How long one all-reduce may take.
inline constexpr auto kPatience = std::chrono::seconds(60);

class JobOfBench {
 public:
  // Buffers of `bytes`, at least one element. One small all-reduce makes sure that the job runs.
  JobOfBench(const std::string& name, std::span<const std::string> sockets, std::size_t bytes) {
    const std::size_t elements = std::max<std::size_t>(1, bytes / sizeof(float));
    for (const std::string& socket : sockets) {
      sessions_.emplace_back(name, socket);
      buffers_.push_back(sessions_.back().buffer<float>(elements));
      std::fill(buffers_.back().begin(), buffers_.back().end(), 0.0F);
    }
    allreduce(1);
  }

  // One all-reduce of the whole buffers: seconds from the first submission to the last end.
  double allreduce() { return allreduce(buffers_.front().size()); }

 private:
  double allreduce(std::size_t elements) {
    std::vector<Request> requests;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      requests.push_back(sessions_[i].all_reduce(buffers_[i].span().first(elements)));
    }
    for (Request& request : requests) request.wait(kPatience);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::vector<Session> sessions_;
  std::vector<Buffer<float>> buffers_;
};

// For a process with the trainers of many jobs: as many open files as it may have, and heaps that
// hold no more than a buffer of `bytes`.
inline void prepare_for_many_jobs(std::size_t bytes) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  setenv("GRADCUBE_HEAP", std::to_string(bytes + (1 << 20)).c_str(), 1);
}

// A whole number, at least 1; throws std::invalid_argument.
inline std::size_t parse_number(const std::string& name, const std::string& text) {
  std::size_t used = 0;
  unsigned long value = 0;
  try {
    value = std::stoul(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || text[0] == '-' || value == 0) {
    throw std::invalid_argument(name + " '" + text + "': expected a whole number, at least 1");
  }
  return value;
}

inline double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace gradcube::bench

#endif  // GRADCUBE_TESTS_BENCH_TENANTS_JOB_OF_BENCH_H_
