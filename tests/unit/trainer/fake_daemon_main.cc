// The fake daemon as a program, for tests in other languages: listens at the path given, prints
// "ready", and runs until its standard input closes. Commands are single characters: r releases the
// sessions of job "hold"; l and a print how many trainers have left in order, and aborted, so far;
// g prints 1 where an all-gather is what was submitted last, else 0.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>

#include "tests/unit/trainer/fake_daemon.h"

namespace {

using gradcube::trainer::FakeDaemon;

void tell(int number) {
  std::printf("%d\n", number);
  std::fflush(stdout);
}

bool gathers(const FakeDaemon& daemon) {
  return gradcube::trainer::is_collective(daemon.heard().submission,
                                          gradcube::shared::CollectiveKind::all_gather);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "usage: fake_daemon SOCKET [RANK SIZE]\n");
    return 2;
  }
  try {
    FakeDaemon daemon(argv[1], argc == 4 ? std::atoi(argv[2]) : FakeDaemon::kRank,
                      argc == 4 ? std::atoi(argv[3]) : FakeDaemon::kSize);
    std::puts("ready");
    std::fflush(stdout);
    char command = 0;
    while (::read(STDIN_FILENO, &command, 1) == 1) {
      if (command == 'r') daemon.release();
      if (command == 'l') tell(daemon.orderly_leaves());
      if (command == 'a') tell(daemon.aborts());
      if (command == 'g') tell(gathers(daemon) ? 1 : 0);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
