// The names of a hub's checkpoint files, and which version they have.

#include "trainer/src/hub/checkpoint_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "control/checkpoint/checkpoint_writer.h"
#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::trainer {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointFiles, StayWhereTheyWereNamedWhenTheWorkingFolderChanges) {
  EXPECT_EQ(checkpoint_base("m.hub"), (fs::current_path() / "m.hub").string());
  EXPECT_EQ(checkpoint_base("/a/m.hub"), "/a/m.hub");
}

TEST(CheckpointFiles, AreFoundByTheirNames) {
  std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  for (const char* file :
       {"m.hub.10.1-of-2", "m.hub.9.2-of-2", "m.hub.10.3-of-2", "m.hub.10.0-of-2",
        "m.hub.01.1-of-2", "m.hub.10.1-of-2.aBcDeF", "m.hub.10", "m.hub", "n.hub.10.1-of-2",
        "m.hub.-1.1-of-2", "m.hub.99999999999999999999.1-of-2", "m.hub.11.g4.1-of-2",
        "m.hub.12.2-of-2.prepared", "m.hub.13.g0.1-of-2", "m.hub.14.g01.1-of-2",
        "m.hub.15.g1.g2.1-of-2", "m.hub.16.1-of-2.prepared.x", "m.hub.17.3.1-of-2"}) {
    std::ofstream(folder / file).put('x');
  }
  std::vector<CheckpointFile> files = checkpoint_files((folder / "m.hub").string());
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.version < b.version; });
  EXPECT_EQ(files, (std::vector<CheckpointFile>{
                       {{9, 0}, 1, 2}, {{10, 0}, 0, 2}, {{11, 4}, 0, 2}, {{12, 0}, 1, 2, true}}));
  for (const CheckpointFile& file : files) {
    EXPECT_TRUE(fs::exists(path_of((folder / "m.hub").string(), file)));
  }
  EXPECT_EQ(next_generation((folder / "m.hub").string(), 11), 5U);
  EXPECT_EQ(next_generation((folder / "m.hub").string(), 8), 0U);
  fs::remove_all(folder);
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(CheckpointFiles, OfWritersThatWereKilledAreRemovedAndThoseOfLivingOnesAreNot) {
  std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const std::string base = (folder / "m.hub").string();
  const control::CheckpointHeader header{.settings = control::parse_optimizer("sgd", "optimizer"),
                                         .step = 7,
                                         .part = 0,
                                         .parts = 1,
                                         .keys = {{"a", 3, aggregation::DataType::float32}},
                                         .steps = {7},
                                         .ranges = {{0, 0, 3}}};
  const auto path = [&](std::uint64_t step) { return path_of(base, {{step, 0}, 0, 1}); };
  const pid_t pid = fork();
  if (pid == 0) {
    new control::CheckpointWriter(path(7), header);
    new control::CheckpointWriter((folder / "n.hub.7.1-of-1").string(), header);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_EQ(files_in(folder), 2U);
  std::ofstream(path(7) + ".000000aBcDeF").put('x');
  std::ofstream(path(7) + ".aBcDeF").put('x');
  control::CheckpointWriter living(path(8), header);
  remove_orphans(base);
  EXPECT_EQ(files_in(folder), 4U)
      << "those of another host, of another path and of a living writer";
  living.write(std::vector<float>(3));
  living.commit();
  EXPECT_EQ(checkpoint_files(base), (std::vector<CheckpointFile>{{{8, 0}, 0, 1}}));
  fs::remove_all(folder);
}

TEST(CheckpointFiles, ANewestIsOwnOrWhole) {
  using Version = CheckpointVersion;
  const CheckpointFile own{{}, 1, 3};
  const auto file = [](std::uint64_t step, std::uint32_t part, std::uint32_t parts,
                       std::uint64_t generation = 0) {
    return CheckpointFile{{step, generation}, part, parts};
  };
  EXPECT_EQ(newest_version({}, own), std::nullopt);
  EXPECT_EQ(newest_version({file(5, 0, 3), file(5, 2, 3)}, own), std::nullopt) << "parts of others";
  EXPECT_EQ(newest_version({file(5, 0, 3), file(5, 1, 3), file(4, 1, 3)}, own), (Version{5, 0}));
  EXPECT_EQ(newest_version({file(5, 1, 3), file(8, 1, 2), file(8, 0, 2), file(9, 0, 4)}, own),
            (Version{8, 0}))
      << "all parts of another number";
  EXPECT_EQ(newest_version({file(8, 0, 2), file(8, 1, 2, 1)}, own), std::nullopt)
      << "of two generations";
  const std::vector<CheckpointFile> twice = {file(5, 1, 3), file(5, 1, 3, 2)};
  EXPECT_EQ(newest_version(twice, own), (Version{5, 2}));
  EXPECT_EQ(newest_version(twice, own, (Version{5, 2})), (Version{5, 0}));
  EXPECT_EQ(newest_version(twice, own, (Version{5, 0})), std::nullopt);
}

TEST(CheckpointFiles, APartThatIsThereUnderBothNamesCountsOnce) {
  const CheckpointFile own{{}, 2, 3};
  const CheckpointFile prepared{{5, 1}, 0, 2, true};
  CheckpointFile published = prepared;
  published.prepared = false;
  const CheckpointFile other{{5, 1}, 1, 2};
  EXPECT_EQ(newest_version({prepared, published}, own), std::nullopt) << "part 1 of 2 is missing";
  EXPECT_EQ(without_doubles({prepared, other, published}),
            (std::vector<CheckpointFile>{published, other}));
}

}  // namespace
}  // namespace gradcube::trainer
