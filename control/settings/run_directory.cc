#include "control/settings/run_directory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <set>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/system_error.h"

namespace gradcube::control {
namespace {

// What the longest socket name of a BCube may take of sockaddr_un: "/server-", eight digits of
// three characters, ".sock".
constexpr std::size_t kLongestSocketName = 8 + 8 * 4 + 5;
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1 - kLongestSocketName;

constexpr auto kProbePause = std::chrono::milliseconds(10);
constexpr int kLockAttempts = 30;
constexpr int kPidAttempts = 10;

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

pid_t read_pid(int descriptor) {
  char text[32] = {};
  const ssize_t length = pread(descriptor, text, sizeof text - 1, 0);
  pid_t pid = 0;
  if (length > 0) std::from_chars(text, text + length, pid);
  return pid > 0 ? pid : 0;
}

// Whose daemon the user trusts beside his own and root's.
std::optional<uid_t> named_user() {
  const char* text = environment("GRADCUBE_DAEMON_UID");
  if (text == nullptr) return std::nullopt;
  const std::string_view number(text);
  uid_t user = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), user);
  if (error == std::errc() && rest == number.data() + number.size()) return user;
  throw SetupError("GRADCUBE_DAEMON_UID " + quoted(number) +
                   " is not a user id: expected a number, as `id -u` prints");
}

constexpr std::string_view kMemifSocket = "memif.sock";
constexpr std::string_view kSwitchesPrefix = "switches-";

bool is_socket_name(std::string_view name) {
  if (name.ends_with('~')) name.remove_suffix(1);  // of a daemon that died before it listened
  return name == "control.sock" || name == "dpdk_telemetry.v2" || name == kMemifSocket ||
         (name.starts_with("server-") && name.ends_with(".sock"));
}

// "2-1", as of_server() names it, or as of_switches() does.
bool is_daemon_folder(std::string_view name) {
  if (name.starts_with(kSwitchesPrefix)) name.remove_prefix(kSwitchesPrefix.size());
  return !name.empty() && name.find_first_not_of("0123456789-") == std::string_view::npos;
}

}  // namespace

RunDirectory::RunDirectory(std::filesystem::path path) : path_(std::move(path)) {
  path_ = path_.lexically_normal();
  if (!path_.has_filename() && path_.has_parent_path()) path_ = path_.parent_path();
}

RunDirectory RunDirectory::from_environment() {
  if (const char* run = environment("GRADCUBE_RUN")) {
    return RunDirectory(std::filesystem::absolute(run));
  }
  if (const char* runtime = environment("XDG_RUNTIME_DIR")) {
    return RunDirectory(std::filesystem::absolute(runtime) / "gradcube");
  }
  return RunDirectory("/tmp/gradcube-" + std::to_string(geteuid()));
}

RunDirectory RunDirectory::of_switches(unsigned part) const {
  return RunDirectory(path_ / (std::string(kSwitchesPrefix) + std::to_string(part)));
}

std::filesystem::path RunDirectory::memif_socket() const { return path_ / kMemifSocket; }

std::filesystem::path RunDirectory::server_socket(std::string_view suffix) const {
  return path_ / ("server-" + std::string(suffix) + ".sock");
}

RunDirectory RunDirectory::of_server(std::string_view suffix) const {
  return RunDirectory(path_ / suffix);
}

bool RunDirectory::exists() const {
  struct stat status;
  return lstat(path_.c_str(), &status) == 0;
}

void RunDirectory::check_path() const {
  const std::string& path = path_.native();
  // It stands in JSON and in lines of text.
  if (const std::string shown = printable(path, path.size()); shown != path) {
    throw SetupError(
        fmt::format("the run directory {} has a path that is not UTF-8, or has control characters: "
                    "set GRADCUBE_RUN to another one",
                    shown));
  }
  if (path.size() > kLongestPath) {
    throw SetupError(
        fmt::format("the run directory {} has a path of {} characters, and Unix sockets leave room "
                    "for {}: set GRADCUBE_RUN to a shorter one",
                    path, path.size(), kLongestPath));
  }
}

void RunDirectory::require_open() const {
  if (faccessat(AT_FDCWD, path_.c_str(), X_OK, AT_EACCESS) == 0 || errno != EACCES) return;
  const std::filesystem::path whole = std::filesystem::absolute(path_);
  std::filesystem::path at;
  for (const std::filesystem::path& part : whole) {
    at /= part;
    struct stat status;
    if (stat(at.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (faccessat(AT_FDCWD, at.c_str(), X_OK, AT_EACCESS) == 0) continue;
    throw SetupError(
        fmt::format("the run directory {0} is closed to user {1}: {2} belongs to user {3}, who "
                    "lets nobody else in. Set GRADCUBE_RUN to a directory of your own; or ask user "
                    "{3} for a daemon whose allow-users names you, in a directory that is open on "
                    "the way",
                    path_.string(), geteuid(), at.string(), status.st_uid));
  }
}

void RunDirectory::create() const {
  check_path();
  require_open();
  if (!exists()) {
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    if (mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
      throw SetupError(fmt::format(
          "cannot create the run directory {}: {}; set GRADCUBE_RUN to a directory that you can "
          "write to",
          path_.string(), std::strerror(errno)));
    }
  }
  check();
}

void RunDirectory::check() const { check_for(false); }

void RunDirectory::check_as_client() const { check_for(true); }

bool RunDirectory::is_own() const {
  struct stat status;
  return lstat(path_.c_str(), &status) == 0 && status.st_uid == geteuid();
}

std::optional<std::filesystem::path> RunDirectory::admit_others() const {
  if (chmod(path_.c_str(), 0755) != 0) {
    throw system_error("cannot let others look into the run directory {}", path_.string());
  }
  const std::filesystem::path whole = std::filesystem::absolute(path_);
  for (std::filesystem::path at = whole.parent_path(); at != at.parent_path();
       at = at.parent_path()) {
    struct stat status;
    if (stat(at.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) == 0) return at;
  }
  return std::nullopt;
}

void RunDirectory::check_for(bool is_client) const {
  check_path();
  require_open();
  const std::string name = "the run directory " + path_.string();
  struct stat status;
  if (lstat(path_.c_str(), &status) != 0) throw system_error("cannot look at {}", name);
  if (S_ISLNK(status.st_mode)) {
    throw SetupError(name +
                     " is a symbolic link, which could lead anywhere: set GRADCUBE_RUN to a "
                     "directory of your own");
  }
  if (!S_ISDIR(status.st_mode)) {
    throw SetupError(name + " is not a directory: set GRADCUBE_RUN to a directory of your own");
  }
  const bool trusted = is_client && (status.st_uid == 0 || status.st_uid == named_user());
  if (status.st_uid != geteuid() && !trusted) {
    throw SetupError(fmt::format(
        "{} belongs to user {}, not to you: set GRADCUBE_RUN to a directory of your own{}", name,
        status.st_uid,
        is_client ? fmt::format(", or GRADCUBE_DAEMON_UID={} to use the daemon of that user",
                                status.st_uid)
                  : ""));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw SetupError(name +
                     " can be written to by others: set GRADCUBE_RUN to a directory to which only "
                     "you can write");
  }
}

std::optional<LivingDaemon> RunDirectory::living_daemon() const {
  const Descriptor file(open(lock_file().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return std::nullopt;
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) throw system_error("cannot probe {}", lock_file().string());
  for (int attempt = 0; attempt < kPidAttempts; ++attempt) {
    if (const pid_t pid = read_pid(file.get())) return LivingDaemon{pid};
    std::this_thread::sleep_for(kProbePause);
  }
  return LivingDaemon{0};
}

Descriptor RunDirectory::begin_log() const {
  const std::string name = log_file().string();
  if (rename(name.c_str(), old_log_file().c_str()) != 0 && errno != ENOENT) {
    throw system_error("cannot rename {}", name);
  }
  Descriptor log(
      open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log.valid()) throw system_error("cannot write {}", name);
  return log;
}

void RunDirectory::touch_files() const noexcept {
  std::error_code error;
  for (std::filesystem::directory_iterator each(path_, error), end; !error && each != end;
       each.increment(error)) {
    utimensat(AT_FDCWD, each->path().c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
}

std::vector<RunDirectory> RunDirectory::living_parts() const {
  std::vector<RunDirectory> parts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (!is_daemon_folder(entry.path().filename().native())) continue;
    if (const RunDirectory part(entry.path()); part.living_daemon()) parts.push_back(part);
  }
  std::sort(parts.begin(), parts.end(), [](const RunDirectory& one, const RunDirectory& other) {
    return one.path() < other.path();
  });
  return parts;
}

std::vector<std::filesystem::path> RunDirectory::stale_sockets() const {
  std::set<std::filesystem::path> in_use;
  for (const RunDirectory& part : living_parts()) {
    in_use.insert({part.path(), server_socket(part.path().filename().native())});
  }
  std::vector<std::filesystem::path> sockets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().native();
    if (in_use.contains(entry.path())) continue;
    if (is_socket_name(name)) sockets.push_back(entry.path());
    if (!is_daemon_folder(name) || !entry.is_directory(error)) continue;
    const RunDirectory of_daemon(entry.path());
    for (const auto& socket :
         {of_daemon.control_socket(), of_daemon.telemetry_socket(), of_daemon.memif_socket()}) {
      if (std::filesystem::exists(socket, error)) sockets.push_back(socket);
    }
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

void RunDirectory::remove_stale_sockets(const DaemonLock&) const {
  for (const auto& socket : stale_sockets()) {
    if (unlink(socket.c_str()) != 0 && errno != ENOENT) {
      throw system_error("cannot remove the stale socket {}", socket.string());
    }
  }
}

std::optional<DaemonLock> DaemonLock::acquire(const RunDirectory& directory) {
  const std::string name = directory.lock_file().string();
  Descriptor file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) throw system_error("cannot open {}", name);
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      if (ftruncate(file.get(), 0) != 0) throw system_error("cannot write {}", name);
      return DaemonLock(std::move(file));
    }
    if (errno != EWOULDBLOCK && errno != EINTR) throw system_error("cannot lock {}", name);
    std::this_thread::sleep_for(kProbePause);
  }
  return std::nullopt;
}

void DaemonLock::write_pid() const {
  const std::string text = std::to_string(getpid()) + "\n";
  if (ftruncate(file_.get(), 0) != 0 ||
      pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw system_error("cannot write the daemon's pid");
  }
}

bool DaemonLock::is_in(const RunDirectory& directory) const {
  struct stat locked;
  struct stat named;
  return fstat(file_.get(), &locked) == 0 && lstat(directory.lock_file().c_str(), &named) == 0 &&
         locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

}  // namespace gradcube::control
