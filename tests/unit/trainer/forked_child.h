// Children made by fork(), in tests of a session.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_FORKED_CHILD_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_FORKED_CHILD_H_

#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/trainer/session_fixture.h"

namespace gradcube::trainer {

// What `call` returns in a forked child; "" when the child does not come to its end. The parent
// does `meanwhile` before the child begins.
inline std::string in_child(const std::function<std::string()>& call,
                            const std::function<void()>& meanwhile = {}) {
  int ends[2];
  int begin[2];
  if (::pipe(ends) != 0 || ::pipe(begin) != 0) return "";
  const pid_t child = ::fork();
  ::close(begin[child == 0 ? 1 : 0]);
  if (child == 0) {
    char nothing = 0;
    while (::read(begin[0], &nothing, 1) < 0 && errno == EINTR) continue;
    const std::string text = call();
    const bool written =
        ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  if (meanwhile) meanwhile();
  ::close(begin[1]);
  ::close(ends[1]);
  std::string text;
  char part[512];
  ssize_t bytes = 0;
  while ((bytes = ::read(ends[0], part, sizeof(part))) > 0 || (bytes < 0 && errno == EINTR)) {
    if (bytes > 0) text.append(part, static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with " << status;
  return text;
}

// Whether a child was made that came to its end well.
inline bool ended_well(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_FORKED_CHILD_H_
