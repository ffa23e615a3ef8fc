#include "dataplane/bed/run_batch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/system_error.h"
#include "dataplane/bed/child_process.h"

namespace gradcube::dataplane {

using control::Descriptor;
using control::SetupError;

namespace {

constexpr std::size_t kLongestErrors = 4096;
constexpr std::size_t kShownErrors = 300;

// A file in memory instead of a pipe: neither side can wait for the other.
Descriptor memory_file(std::string_view text) {
  Descriptor file(memfd_create("gradcube-batch", MFD_CLOEXEC));
  if (file.get() < 0 ||
      write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(file.get(), 0, SEEK_SET) != 0) {
    throw control::system_error("cannot write a file in memory");
  }
  return file;
}

std::string text_of(const Descriptor& file) {
  std::string text(kLongestErrors, '\0');
  const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// The line of the batch that the program says has failed: "Command failed -:3".
std::string_view failed_command(std::string_view commands, std::string_view errors) {
  constexpr std::string_view kMark = "Command failed -:";
  const std::size_t mark = errors.rfind(kMark);
  std::size_t number = 0;
  if (mark == std::string_view::npos) return {};
  const std::string_view rest = errors.substr(mark + kMark.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), number);
  for (; number > 1 && !commands.empty(); --number) {
    commands.remove_prefix(std::min(commands.size(), commands.find('\n') + 1));
  }
  return commands.substr(0, commands.find('\n'));
}

// What to do about it.
std::string_view advice(std::string_view errors) {
  for (const std::string_view sign : {"not supported", "Unknown device type", "is unknown"}) {
    if (errors.find(sign) == std::string_view::npos) continue;
    return "; the kernel must have bridges, veths and token buckets: `modprobe -a bridge veth "
           "sch_tbf`";
  }
  if (errors.find("not permitted") != std::string_view::npos) {
    return "; it needs root (CAP_NET_ADMIN)";
  }
  return "";
}

}  // namespace

std::filesystem::path find_network_program(std::string_view name) {
  const char* variable = std::getenv("PATH");
  // Other users than root may not have the last two there.
  const std::string all = std::string(variable == nullptr ? "" : variable) + ":/usr/sbin:/sbin";
  std::string_view folders = all;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!folder.empty() && access(path.c_str(), X_OK) == 0) return path;
  }
  throw SetupError(
      fmt::format("cannot find the program {}, by which the veth fabric makes its links: install "
                  "the package iproute2",
                  name));
}

std::string batch_failure(std::string_view program, std::string_view commands,
                          std::string_view errors) {
  const std::string_view command = failed_command(commands, errors);
  std::string_view said = errors.substr(0, errors.find("Command failed"));
  while (said.ends_with('\n')) said.remove_suffix(1);
  return fmt::format("`{} {}` failed: {}{}", program, command.empty() ? "-batch -" : command,
                     said.empty() ? "it did not say why" : control::printable(said, kShownErrors),
                     advice(errors));
}

void run_batch(const std::filesystem::path& program, const std::string& commands,
               int network_namespace, std::chrono::milliseconds patience) {
  if (commands.empty()) return;
  const Descriptor input = memory_file(commands);
  const Descriptor output = memory_file("");
  const std::array<const char*, 4> arguments{program.c_str(), "-batch", "-", nullptr};
  ChildProcess child = ChildProcess::start([&] {
    if (network_namespace != kOwnNamespace && setns(network_namespace, CLONE_NEWNET) != 0) return;
    dup2(input.get(), STDIN_FILENO);
    dup2(output.get(), STDOUT_FILENO);
    dup2(output.get(), STDERR_FILENO);
    execv(arguments[0], const_cast<char* const*>(arguments.data()));
  });
  const std::string name = program.filename().string();
  if (!child.ends_by(std::chrono::steady_clock::now() + patience)) {
    throw SetupError(fmt::format("{} did not end within {} ms", name, patience.count()));
  }
  if (!child.succeeded()) {
    const std::string errors = text_of(output);
    throw SetupError(errors.empty() ? fmt::format("{} ended with {}", name, child.end_text())
                                    : batch_failure(name, commands, errors));
  }
}

}  // namespace gradcube::dataplane
