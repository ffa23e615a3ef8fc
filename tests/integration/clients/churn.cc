// Jobs that come and go without pause: churn SECONDS JOBS SEED SOCKET...
//
// JOBS processes each run one job after another, with one trainer process per SOCKET. The trainers
// of a job do one all-reduce and end only when all of them have it, each in a way drawn from SEED:
// they leave, end without a goodbye, or are killed. So nobody may see an error. Prints a line
// "failure: ..." for each trainer that does, and "rounds N" for each of the JOBS processes.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "gradcube/gradcube.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPatience = 20'000;  // ms

enum class End { leave, exit, killed };

void print(const std::string& line) {
  const std::string text = line + "\n";  // one write(): lines of several processes stay whole
  (void)!write(STDOUT_FILENO, text.data(), text.size());
}

// One trainer's life; returns what went wrong.
std::string live(const std::string& socket, const std::string& job, std::atomic<unsigned>& arrived,
                 unsigned size, End end) {
  gradcube_session* session = nullptr;
  if (gradcube_open(socket.c_str(), job.c_str(), nullptr, &session) != 0) {
    return std::string("open: ") + gradcube_last_error(nullptr);
  }
  float values[4] = {1, 1, 1, 1};
  std::uint64_t request = 0;
  if (gradcube_allreduce(session, values, std::size(values), GRADCUBE_FLOAT32, GRADCUBE_SUM,
                         &request) != 0 ||
      gradcube_wait(session, request, kPatience) != 0) {
    return std::string("all-reduce: ") + gradcube_last_error(session);
  }
  if (values[3] != static_cast<float>(size)) return "all-reduce: a wrong sum";
  arrived.fetch_add(1);
  const auto deadline = Clock::now() + std::chrono::milliseconds(kPatience);
  while (arrived.load() < size) {
    if (Clock::now() > deadline) return "the other trainers did not finish";
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (end == End::leave) gradcube_close(session);
  if (end == End::killed) kill(getpid(), SIGKILL);
  return "";
}

void run_round(const std::vector<std::string>& sockets, const std::string& job,
               std::atomic<unsigned>& arrived, std::mt19937_64& random) {
  arrived.store(0);
  std::vector<pid_t> children;
  for (const std::string& socket : sockets) {
    const End end = static_cast<End>(random() % 3);
    const pid_t child = fork();
    if (child == 0) {
      const std::string failure =
          live(socket, job, arrived, static_cast<unsigned>(sockets.size()), end);
      if (!failure.empty()) {
        print("failure: pid " + std::to_string(getpid()) + ", job " + job + ": " + failure);
      }
      _exit(0);
    }
    if (child < 0) print("failure: fork");
    children.push_back(child);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
}

void run_jobs(const std::vector<std::string>& sockets, const std::string& name,
              Clock::time_point end, std::uint64_t seed) {
  void* memory = mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    print("failure: mmap");
    return;
  }
  auto& arrived = *new (memory) std::atomic<unsigned>(0);
  std::mt19937_64 random(seed);
  unsigned rounds = 0;
  do {
    run_round(sockets, name + "-" + std::to_string(rounds), arrived, random);
    ++rounds;
  } while (Clock::now() < end);
  print("rounds " + std::to_string(rounds));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  const unsigned jobs = static_cast<unsigned>(std::atoi(argv[2]));
  const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  const std::vector<std::string> sockets(argv + 4, argv + argc);
  for (unsigned job = 0; job < jobs; ++job) {
    if (fork() != 0) continue;
    run_jobs(sockets, "churn-" + std::to_string(job), end, seed + job);
    _exit(0);
  }
  while (wait(nullptr) > 0 || errno == EINTR) {
  }
  return 0;
}
