#include "control/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gradcube::control {
namespace {

// What `act` returns in a child that has closed the three standard descriptors.
template <typename Act>
int without_standard_descriptors(const Act& act) {
  const pid_t child = fork();
  if (child == 0) {
    for (int standard = 0; standard <= STDERR_FILENO; ++standard) close(standard);
    _exit(act());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

TEST(Descriptor, IsNeverThatOfStandardOutput) {
  EXPECT_EQ(without_standard_descriptors([] {
              const Descriptor first(open("/dev/null", O_WRONLY | O_CLOEXEC));
              const Descriptor second(open("/dev/null", O_WRONLY));
              const bool above = first.get() > STDERR_FILENO && second.get() > STDERR_FILENO;
              const bool closed = write(STDOUT_FILENO, "x", 1) == -1;
              const bool as_before =
                  fcntl(first.get(), F_GETFD) == FD_CLOEXEC && fcntl(second.get(), F_GETFD) == 0;
              return above && closed && as_before ? 7 : 1;
            }),
            7);
}

TEST(Descriptor, OfNothingIsNotValid) {
  EXPECT_FALSE(Descriptor().valid());
  EXPECT_FALSE(Descriptor(open("/no/such/file", O_RDONLY)).valid());
}

}  // namespace
}  // namespace gradcube::control
