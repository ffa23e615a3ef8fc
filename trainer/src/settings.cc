#include "trainer/src/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "trainer/src/failure.h"
#include "trainer/src/quoted.h"
#include "trainer/src/trust.h"

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

// Of a unit in any case, empty when there is no such unit.
std::optional<double> factor_of(std::string_view unit) {
  struct Unit {
    std::string_view name;
    double factor;
  };
  constexpr Unit kUnits[] = {{"", 1},          {"k", 1e3},       {"m", 1e6},      {"g", 1e9},
                             {"ki", 1u << 10}, {"mi", 1u << 20}, {"gi", 1u << 30}};
  std::string lower(unit);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower.ends_with('b')) lower.pop_back();
  for (const Unit& known : kUnits) {
    if (known.name == lower) return known.factor;
  }
  return std::nullopt;
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

std::uint64_t parse_heap_bytes(std::string_view text) {
  const Failure refusal(
      GRADCUBE_EINVAL, "invalid heap size " + quoted(text) +
                           " in GRADCUBE_HEAP: expected a number of bytes, or a number and K, M, G "
                           "(powers of 1000) or Ki, Mi, Gi (powers of 1024), from 1 byte to "
                           "1024Gi, for example 512Mi");
  constexpr double kMost = static_cast<double>(std::uint64_t{1} << 40);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const char* end = text.data() + digits;
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::optional<double> factor = factor_of(text.substr(digits));
  if (error != std::errc() || rest != end || !factor.has_value()) throw refusal;
  const double bytes = number * *factor;
  const double whole = std::round(bytes);  // 4.35 times 1000 is not 4350 in binary fractions
  if (!(whole >= 1 && whole <= kMost) || std::abs(bytes - whole) > 1e-3) throw refusal;
  return static_cast<std::uint64_t>(whole);
}

std::uint64_t wanted_heap_bytes() {
  const std::string text = environment("GRADCUBE_HEAP");
  return text.empty() ? kDefaultHeapBytes : parse_heap_bytes(text);
}

}  // namespace gradcube::trainer
