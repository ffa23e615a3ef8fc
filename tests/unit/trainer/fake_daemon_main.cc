// The fake daemon as a program, for tests in other languages: listens at the path given, prints
// "ready", and runs until its standard input closes. Commands are single characters: r releases the
// sessions of job "hold"; l and a print how many trainers have left in order, and aborted, so far.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>

#include "tests/unit/trainer/fake_daemon.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "usage: fake_daemon SOCKET [RANK SIZE]\n");
    return 2;
  }
  try {
    using gradcube::trainer::FakeDaemon;
    FakeDaemon daemon(argv[1], argc == 4 ? std::atoi(argv[2]) : FakeDaemon::kRank,
                      argc == 4 ? std::atoi(argv[3]) : FakeDaemon::kSize);
    std::puts("ready");
    std::fflush(stdout);
    char command = 0;
    while (::read(STDIN_FILENO, &command, 1) == 1) {
      if (command == 'r') daemon.release();
      if (command == 'l' || command == 'a') {
        std::printf("%d\n", command == 'l' ? daemon.orderly_leaves() : daemon.aborts());
        std::fflush(stdout);
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
