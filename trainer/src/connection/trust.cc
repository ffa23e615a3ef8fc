#include "trainer/src/connection/trust.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

// Whether the environment is that of the user to protect. It is of the user who started the
// program, which a set-user-id program does not protect, nor one that has become another user by a
// capability of its file. But one with such a capability that is still that user's is: the user
// could give it a daemon of its own anyway. secure_getenv() makes no difference among them.
bool is_environment_of_user() {
  if (::getauxval(AT_SECURE) == 0) return true;
  return ::getauxval(AT_UID) == ::getauxval(AT_EUID) &&
         ::getauxval(AT_GID) == ::getauxval(AT_EGID) && ::getauxval(AT_UID) == ::geteuid();
}

std::optional<uid_t> named_user() {
  const char* text = is_environment_of_user() ? std::getenv("GRADCUBE_DAEMON_UID") : nullptr;
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view number(text);
  const char* end = number.data() + number.size();
  uid_t user = 0;
  const auto [rest, error] = std::from_chars(number.data(), end, user);
  if (error != std::errc() || rest != end) {
    throw Failure(GRADCUBE_EINVAL, "GRADCUBE_DAEMON_UID " + in_quotes(number) +
                                       " is not a user id: expected a number, as `id -u` prints");
  }
  return user;
}

bool is_trusted(uid_t user) { return user == ::geteuid() || user == 0 || user == named_user(); }

// What can be done about a daemon of `user`. Whom it serves, it says itself.
std::string hint(uid_t user) {
  return ", or set GRADCUBE_DAEMON_UID=" + std::to_string(user) +
         " to give that user's daemon your gradients";
}

// lstat() follows a link whose name ends in a slash.
std::string without_trailing_slash(std::string path) {
  const auto ends_with = [&path](const char* tail, std::size_t bytes) {
    return path.size() > bytes && path.compare(path.size() - bytes, bytes, tail) == 0;
  };
  while (ends_with("/", 1) || ends_with("/.", 2)) path.pop_back();
  return path;
}

}  // namespace

void check_run_directory(const std::string& path) {
  const std::string name = "the run directory " + path;
  struct stat status {};
  if (::lstat(without_trailing_slash(path).c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot look at " + name, errno));
  }
  if (S_ISLNK(status.st_mode)) {
    throw Failure(GRADCUBE_EJOB, name +
                                     " is a symbolic link, which could lead anywhere: set "
                                     "GRADCUBE_RUN to a directory of your own");
  }
  if (!S_ISDIR(status.st_mode)) {
    throw Failure(GRADCUBE_EJOB,
                  name + " is not a directory: set GRADCUBE_RUN to a directory of your own");
  }
  if (!is_trusted(status.st_uid)) {
    throw Failure(GRADCUBE_EJOB, name + " belongs to user " + std::to_string(status.st_uid) +
                                     ", not to you: set GRADCUBE_RUN to a directory of your own" +
                                     hint(status.st_uid));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Failure(GRADCUBE_EJOB,
                  name +
                      " can be written to by others: set GRADCUBE_RUN to a directory "
                      "to which only you can write");
  }
}

void check_daemon(int socket, const std::string& path) {
  ucred listener{};
  socklen_t length = sizeof(listener);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &length) != 0) {
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot see who listens at " + path, errno));
  }
  if (!is_trusted(listener.uid)) {
    throw Failure(GRADCUBE_EJOB,
                  "the daemon at " + path + " belongs to user " + std::to_string(listener.uid) +
                      ", not to you: start a cluster of your own with `gradcube up`" +
                      hint(listener.uid));
  }
}

}  // namespace gradcube::trainer
