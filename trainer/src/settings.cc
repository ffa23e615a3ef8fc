#include "trainer/src/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "trainer/src/failure.h"

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
  constexpr std::size_t kShown = 16;  // a cluster of thousands must still give a message
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
  return "/tmp/gradcube-" + std::to_string(::getuid());
}

std::string find_socket(std::string_view given) {
  if (!given.empty()) return std::string(given);
  if (const std::string socket = environment("GRADCUBE_SOCKET"); !socket.empty()) return socket;
  const std::string directory = run_directory();
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

std::uint64_t parse_heap_bytes(std::string_view text) {
  const Failure refusal(GRADCUBE_EINVAL,
                        "the heap size '" + std::string(text) +
                            "' is not a positive number of bytes: accepted are 4096, 512K, 100M, "
                            "16G, up to 1024G (GRADCUBE_HEAP)");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value == 0 || value > kMost) throw refusal;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  int shift = 0;
  if (unit == "K") shift = 10;
  if (unit == "M") shift = 20;
  if (unit == "G") shift = 30;
  if ((shift == 0 && !unit.empty()) || value > (kMost >> shift)) throw refusal;
  return value << shift;
}

std::uint64_t wanted_heap_bytes() {
  const std::string text = environment("GRADCUBE_HEAP");
  return text.empty() ? kDefaultHeapBytes : parse_heap_bytes(text);
}

}  // namespace gradcube::trainer
