#include "trainer/src/connection/settings.h"

#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/src/base/failure.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

template <typename Call>
std::pair<int, std::string> failure_of(const Call& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return {failure.code(), failure.what()};
  }
  return {GRADCUBE_OK, "no failure"};
}

TEST(Settings, HeapSizesAreBytesOrCarryADecimalOrABinaryUnit) {
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"1", 1},
      {"4096", 4096},
      {"512K", 512'000},
      {"64M", 64'000'000},
      {"16G", 16'000'000'000},
      {"512Ki", 512U << 10},
      {"64Mi", 64U << 20},
      {"16Gi", std::uint64_t{16} << 30},
      {"1024Gi", std::uint64_t{1} << 40},
      {"12.5M", 12'500'000},
      {"4.35k", 4350},
      {"1.5gi", std::uint64_t{3} << 29},
      {"16g", 16'000'000'000},
      {"64mi", 64U << 20},
      {"16GB", 16'000'000'000},
      {"64MiB", 64U << 20},
      {"100B", 100},
  };
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_heap_bytes(text), bytes) << text;
}

TEST(Settings, OtherHeapSizesAreRefusedWithWhatIsAccepted) {
  for (const char* text : {"",
                           "0",
                           "-1",
                           "1.5",
                           "0.0001K",
                           " 1",
                           "1 ",
                           "K",
                           "Mi",
                           "1T",
                           "1i",
                           "1Kx",
                           "1e3",
                           "inf",
                           "nan",
                           "0x10",
                           ".",
                           "1.2.3",
                           "99999999999999999999",
                           "1025Gi",
                           "18446744073709551615G",
                           "0K"}) {
    const auto [code, message] = failure_of([&] { parse_heap_bytes(text); });
    EXPECT_EQ(code, GRADCUBE_EINVAL) << text;
    EXPECT_EQ(message.find("invalid heap size '" + std::string(text) + "' in GRADCUBE_HEAP"), 0U)
        << message;
    EXPECT_NE(message.find("K, M, G (powers of 1000) or Ki, Mi, Gi"), std::string::npos) << message;
  }
}

TEST(Settings, AGivenSocketComesBeforeTheEnvironmentBeforeTheRunDirectory) {
  const TemporaryDirectory run;
  std::ofstream(run / "server-0-1.sock");
  const Environment directory("GRADCUBE_RUN", run.path());
  {
    const Environment socket("GRADCUBE_SOCKET", "/from/environment");
    EXPECT_EQ(find_socket("/given"), "/given");
    EXPECT_EQ(find_socket(""), "/from/environment");
  }
  EXPECT_EQ(find_socket(""), run / "server-0-1.sock");
}

TEST(Settings, SeveralServersAreListedAndTheVariableToSetIsNamed) {
  const TemporaryDirectory run;
  std::ofstream(run / "server-0-1.sock");
  std::ofstream(run / "server-2-2.sock");
  std::ofstream(run / "other.sock");
  const Environment directory("GRADCUBE_RUN", run.path());
  const auto [code, message] = failure_of([] { find_socket(""); });
  EXPECT_EQ(code, GRADCUBE_EINVAL);
  EXPECT_NE(message.find("server-0-1.sock, server-2-2.sock:"), std::string::npos) << message;
  EXPECT_NE(message.find("GRADCUBE_SOCKET"), std::string::npos) << message;
}

TEST(Settings, AnEmptyOrMissingRunDirectoryMeansThatNoDaemonRuns) {
  const TemporaryDirectory run;
  for (const std::string& path : {run.path(), run / "missing"}) {
    const Environment directory("GRADCUBE_RUN", path);
    const auto [code, message] = failure_of([] { find_socket(""); });
    EXPECT_EQ(code, GRADCUBE_ENODAEMON);
    EXPECT_NE(message.find(path), std::string::npos) << message;
    EXPECT_NE(message.find("gradcube up"), std::string::npos) << message;
  }
}

TEST(Settings, AJobsSecretHasAsManyBytesAsNobodyGuesses) {
  {
    const Environment none("GRADCUBE_JOB_SECRET", "");
    EXPECT_EQ(job_secret(), "");
  }
  for (const std::size_t bytes : {16, 255}) {
    const Environment secret("GRADCUBE_JOB_SECRET", std::string(bytes, 's'));
    EXPECT_EQ(job_secret(), std::string(bytes, 's'));
  }
  for (const std::size_t bytes : {1, 15, 256}) {
    const Environment secret("GRADCUBE_JOB_SECRET", std::string(bytes, 's'));
    const auto [code, message] = failure_of([] { job_secret(); });
    EXPECT_EQ(code, GRADCUBE_EINVAL);
    EXPECT_EQ(message.find("GRADCUBE_JOB_SECRET has " + std::to_string(bytes) +
                           " bytes: expected 16 to 255"),
              0U)
        << message;
    EXPECT_EQ(message.find("sss"), std::string::npos) << "messages end in logs";
  }
}

TEST(Settings, TheRunDirectoryFollowsTheUsersRuntimeDirectory) {
  const Environment unset("GRADCUBE_RUN", "");
  {
    const Environment runtime("XDG_RUNTIME_DIR", "/run/user/1234");
    EXPECT_EQ(run_directory(), "/run/user/1234/gradcube");
  }
  const Environment runtime("XDG_RUNTIME_DIR", "");
  EXPECT_EQ(run_directory(), "/tmp/gradcube-" + std::to_string(::geteuid()));
}

}  // namespace
}  // namespace gradcube::trainer
