// What a core dump of a daemon would have of its keys.

#include "dataplane/engine/frame_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "control/base/descriptor.h"
#include "control/settings/cluster_key.h"

namespace gradcube::dataplane {
namespace {

// A key that the test knows without having it in its memory.
using Masked = std::array<std::uint8_t, 32>;
constexpr std::uint8_t kMask = 0x5a;

Masked masked(const control::Secret& secret) {
  Masked masked{};
  std::transform(secret.begin(), secret.end(), masked.begin(),
                 [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte ^ kMask); });
  return masked;
}

using Mapping = std::pair<std::uintptr_t, std::uintptr_t>;

// What a core dump takes in.
std::vector<Mapping> dumped_mappings() {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/smaps");
  Mapping last;
  std::string rights;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Mapping mapping;
    char dash = 0;
    if (words >> std::hex >> mapping.first >> dash >> mapping.second && dash == '-') {
      last = mapping;
      words >> rights;
    } else if (line.starts_with("VmFlags:")) {
      const bool is_dumped = (line + " ").find(" dd ") == std::string::npos;
      if (is_dumped && rights.starts_with("rw")) mappings.push_back(last);
    }
  }
  return mappings;
}

// In what a core dump takes in.
unsigned copies_of(const Masked& key) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const control::Descriptor memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  std::vector<std::uint8_t> piece(kPiece);
  const auto own = reinterpret_cast<std::uintptr_t>(piece.data());
  unsigned copies = 0;
  for (const auto& [begin, end] : dumped_mappings()) {
    for (std::uintptr_t at = begin; at < end; at += kPiece - key.size()) {
      if (at + kPiece > own && at < own + kPiece) continue;
      const ssize_t bytes =
          pread(memory.get(), piece.data(), std::min(kPiece, end - at), static_cast<off_t>(at));
      if (bytes < static_cast<ssize_t>(key.size())) continue;
      auto from = piece.begin();
      const auto until = piece.begin() + bytes;
      while (true) {
        from = std::search(from, until, key.begin(), key.end(), [](std::uint8_t a, std::uint8_t b) {
          return static_cast<std::uint8_t>(a ^ kMask) == b;
        });
        if (from == until) break;
        ++copies;
        ++from;
      }
    }
    std::fill(piece.begin(), piece.end(), 0);
  }
  return copies;
}

TEST(FrameKeysInMemory, LeaveNoCopyOfAKeyWhereACoreDumpWouldHaveIt) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("frame-keys-" + std::to_string(getpid()) + ".key");
  std::optional<control::Secret> drawn = control::draw_secret();
  const Masked of_cluster = masked(*drawn);
  control::write_key_file(path, control::key_text(*drawn));
  EXPECT_GT(copies_of(of_cluster), 0U) << "the test would find one";
  drawn.reset();
  const UndumpedFrameKeys keys(control::read_key_file(path));
  const Masked of_jobs = masked(keys->of_jobs);
  const Masked of_one_job = masked(control::derived_secret(keys->of_jobs, "job", "1 2"));
  const UndumpedJobKeys of_job(control::derived_secret(keys->of_jobs, "job", "1 2"));
  control::wipe_stack();
  EXPECT_EQ(copies_of(of_cluster), 0U);
  EXPECT_EQ(copies_of(of_jobs), 0U);
  EXPECT_EQ(copies_of(of_one_job), 0U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gradcube::dataplane
