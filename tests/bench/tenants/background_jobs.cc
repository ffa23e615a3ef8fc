// What else goes on in a cluster while something is measured:
//
//   background_jobs idle JOBS SOCKET...
//   background_jobs busy JOBS BYTES SOCKET...
//
// Joins JOBS jobs with a trainer on every SOCKET. Idle ones do nothing more; busy ones make one
// all-reduce of BYTES after the other. Prints "ready" when all run, and leaves when its standard
// input ends. Busy jobs then print how many all-reduces they have ended.

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>
#include <unistd.h>

#include "tests/bench/tenants/job_of_bench.h"

namespace gradcube::bench {
namespace {

void wait_for_end_of_input() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

void run_until_end_of_input(std::deque<JobOfBench>& jobs) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned long> ended{0};
  std::atomic<unsigned> failed{0};
  std::vector<std::thread> threads;
  for (JobOfBench& job : jobs) {
    threads.emplace_back([&stop, &ended, &failed, &job] {
      try {
        for (; !stop; ended.fetch_add(1)) job.allreduce();
      } catch (const std::exception& error) {
        failed.fetch_add(1);
        std::fprintf(stderr, "background_jobs: %s\n", error.what());
      }
    });
  }
  wait_for_end_of_input();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%lu\n", ended.load());
  if (failed != 0) throw std::runtime_error("not all jobs could work");
}

int run(const std::vector<std::string>& arguments) {
  const bool busy = !arguments.empty() && arguments[0] == "busy";
  const std::size_t options = busy ? 3 : 2;
  if (arguments.size() <= options || (!busy && arguments[0] != "idle")) {
    std::fprintf(stderr,
                 "usage: background_jobs idle JOBS SOCKET... | busy JOBS BYTES SOCKET...\n");
    return 2;
  }
  const std::size_t count = parse_number("JOBS", arguments[1]);
  const std::size_t bytes = busy ? parse_number("BYTES", arguments[2]) : sizeof(float);
  const auto sockets = std::span(arguments).subspan(options);
  prepare_for_many_jobs(bytes);
  std::deque<JobOfBench> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    jobs.emplace_back("background-" + std::to_string(i), sockets, bytes);
  }
  std::puts("ready");
  std::fflush(stdout);
  if (busy) {
    run_until_end_of_input(jobs);
  } else {
    wait_for_end_of_input();
  }
  return 0;
}

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  try {
    return gradcube::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "background_jobs: %s\n", error.what());
    return 1;
  }
}
