#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include "cli/command_line.h"

namespace {

// Whoever closed a standard stream would else find it reopened as a socket to the daemon, with our
// messages in it. For reading only: writing to what was closed still fails.
void open_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/dev/null", O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody learns how a child has ended
  return gradcube::cli::run_command_line(argc, argv);
}
