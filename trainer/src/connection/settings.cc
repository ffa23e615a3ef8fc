#include "trainer/src/connection/settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "trainer/heap_size.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/connection/trust.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> sockets_in(const std::string& directory) {
  std::vector<std::string> sockets;
  std::error_code error;
  auto entry = std::filesystem::directory_iterator(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("server-") && name.ends_with(".sock")) sockets.push_back(entry->path());
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 16;  // a cluster of thousands still gets a readable message
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    list += (i == 0 ? "" : ", ") + std::filesystem::path(names[i]).filename().string();
  }
  if (names.size() > kShown) list += ", ... (" + std::to_string(names.size()) + " in all)";
  return list;
}

}  // namespace

std::string run_directory() {
  if (const std::string run = environment("GRADCUBE_RUN"); !run.empty()) return run;
  if (const std::string runtime = environment("XDG_RUNTIME_DIR"); !runtime.empty()) {
    return runtime + "/gradcube";
  }
  return "/tmp/gradcube-" + std::to_string(::geteuid());
}

std::string find_socket(std::string_view given) {
  if (!given.empty()) return std::string(given);
  if (const std::string socket = environment("GRADCUBE_SOCKET"); !socket.empty()) return socket;
  const std::string directory = run_directory();
  check_run_directory(directory);
  const std::vector<std::string> sockets = sockets_in(directory);
  if (sockets.empty()) {
    throw Failure(GRADCUBE_ENODAEMON, "no daemon runs: there is no server-*.sock in " + directory +
                                          ": start a cluster with `gradcube up`");
  }
  if (sockets.size() > 1) {
    throw Failure(GRADCUBE_EINVAL, "several servers are in " + directory + ": " + listed(sockets) +
                                       ": set GRADCUBE_SOCKET to the path of one of them");
  }
  return sockets.front();
}

std::string job_secret() {
  std::string secret = environment("GRADCUBE_JOB_SECRET");
  const bool fits =
      secret.size() >= shared::kLeastJobSecretBytes && secret.size() < shared::kJobSecretBytes;
  if (secret.empty() || fits) return secret;
  throw Failure(GRADCUBE_EINVAL, "GRADCUBE_JOB_SECRET has " + std::to_string(secret.size()) +
                                     " bytes: expected " +
                                     std::to_string(shared::kLeastJobSecretBytes) + " to " +
                                     std::to_string(shared::kJobSecretBytes - 1) +
                                     ", which nobody can guess: `openssl rand -hex 16`");
}

std::uint64_t parse_heap_bytes(std::string_view text) {
  const std::optional<std::uint64_t> bytes = shared::parse_heap_bytes(text);
  if (bytes.has_value()) return *bytes;
  throw Failure(GRADCUBE_EINVAL, "invalid heap size " + in_quotes(text) +
                                     " in GRADCUBE_HEAP: " + std::string(shared::kHeapForm));
}

std::uint64_t wanted_heap_bytes() {
  const std::string text = environment("GRADCUBE_HEAP");
  return text.empty() ? shared::kDefaultHeapBytes : parse_heap_bytes(text);
}

}  // namespace gradcube::trainer
