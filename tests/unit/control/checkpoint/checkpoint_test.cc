#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/bytes.h"
#include "tests/unit/control/checkpoint/checkpoint_fixture.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

using testing::HasSubstr;

TEST_F(Checkpoint, ReadsBackWhatWasWritten) {
  const CheckpointHeader written = header();
  write(written);
  CheckpointReader back = reader();
  EXPECT_EQ(back.header(), written);
  for (std::size_t r = 0; r < written.ranges.size(); ++r) {
    for (std::size_t a = 0; a < written.arrays(); ++a) {
      ASSERT_FALSE(back.at_end());
      std::vector<float> values(back.elements());
      back.read(values);
      EXPECT_EQ(values, array(written, r, a));
    }
  }
  EXPECT_TRUE(back.at_end());
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(Checkpoint, OfAServerThatOwnsNothingHasNoRanges) {
  CheckpointHeader empty = header();
  empty.ranges.clear();
  write(empty);
  EXPECT_TRUE(reader().at_end());
}

TEST_F(Checkpoint, IsRefusedWhereverItIsTruncated) {
  write(header());
  const std::vector<std::uint8_t> whole = content();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    set_content({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    ASSERT_THAT(refusal(), length < kCheckpointPrefix
                               ? HasSubstr("it is no checkpoint of a hub")
                               : HasSubstr("it ends after " + std::to_string(length) + " of " +
                                           std::to_string(whole.size()) + " bytes"));
  }
}

TEST_F(Checkpoint, IsRefusedWhicheverBitHasFlipped) {
  write(header());
  const std::vector<std::uint8_t> whole = content();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned bit : {0u, 6u}) {
      std::vector<std::uint8_t> damaged = whole;
      damaged[at] ^= static_cast<std::uint8_t>(1U << bit);
      set_content(damaged);
      ASSERT_THAT(refusal(), testing::StartsWith("checkpoint: it")) << "byte " << at;
    }
  }
}

TEST_F(Checkpoint, IsRefusedWithWhatIsWrong) {
  write(header());
  const std::vector<std::uint8_t> whole = content();
  const auto refusal_of = [&](auto change) {
    std::vector<std::uint8_t> bytes = whole;
    change(bytes);
    set_content(bytes);
    return refusal();
  };
  EXPECT_EQ(refusal_of([](auto& bytes) { bytes.assign(500, '{'); }),
            "checkpoint: it is no checkpoint of a hub, or its beginning is lost");
  for (const std::uint8_t version : {3, 5}) {
    EXPECT_EQ(refusal_of([&](auto& bytes) {
                bytes[8] = version;
                bytes[13] = 0xa5;  // before 4 there was a checksum
              }),
              "checkpoint: its format is version " + std::to_string(version) +
                  "; this version of Gradcube reads 4");
  }
  EXPECT_EQ(refusal_of([](auto& bytes) { bytes.push_back(0); }),
            "checkpoint: it has 1 bytes behind its end");
  EXPECT_EQ(refusal_of([](auto& bytes) { bytes[48] ^= 1; }),
            "checkpoint: its header is damaged: the checksum is wrong");
  // The last array is the second state of elements 990 to 999 of "weight".
  EXPECT_EQ(refusal_of([](auto& bytes) { bytes[bytes.size() - 9] ^= 1; }),
            "checkpoint: it is damaged: the checksum of the second state of key \"weight\", "
            "elements 990 to 999, is wrong");
}

// A header that was damaged on purpose has the right checksum.
TEST_F(Checkpoint, IsRefusedWhereAHeaderWithTheRightChecksumMakesNoSense) {
  write(header());
  const std::vector<std::uint8_t> whole = content();
  const auto header_size = protocol::load_little<std::uint64_t>(whole.data() + 24);
  const auto refusal_of = [&](std::size_t at, std::uint64_t value) {
    std::vector<std::uint8_t> bytes = whole;
    protocol::store_little(bytes.data() + at, value);
    seal_checkpoint_header(std::span(bytes).first(header_size));
    set_content(bytes);
    return refusal();
  };
  EXPECT_THAT(refusal_of(24, 64), HasSubstr("the sizes in it are impossible"));
  EXPECT_THAT(refusal_of(24, header_size - 24), HasSubstr("the checksum is wrong"));
  EXPECT_THAT(refusal_of(48, 9 | (std::uint64_t{9} << 32)), HasSubstr("part 9 of 9"));
  EXPECT_THAT(refusal_of(56, 5 | (std::uint64_t{2} << 32)), HasSubstr("an unknown optimizer"));
  EXPECT_THAT(refusal_of(56, 4 | (std::uint64_t{3} << 32)), HasSubstr("makes no sense"));
  EXPECT_THAT(refusal_of(64, UINT64_MAX), HasSubstr("it ends within its lists"));
  EXPECT_THAT(refusal_of(64, 2), HasSubstr("bytes behind its lists"));
  EXPECT_THAT(refusal_of(72, 0x7ff8000000000000), HasSubstr("lr=nan; expected 0 to 3.4e38"));
  EXPECT_THAT(refusal_of(144, 2), HasSubstr("a range beyond its key"));
  EXPECT_THAT(refusal_of(152, kMostKeySteps + 1), HasSubstr("makes no sense: a key's steps"));
  EXPECT_EQ(refusal_of(152, kMostKeySteps), "");
  EXPECT_THAT(refusal_of(header_size - 16, 4), HasSubstr("ranges overlap"));
  EXPECT_THAT(refusal_of(header_size - 24, 7), HasSubstr("a range of a key that is not there"));
  EXPECT_THAT(refusal_of(header_size - 8, 9), HasSubstr("another size than the file"));
}

TEST_F(Checkpoint, IsNotThereUntilItIsWhole) {
  {
    CheckpointWriter writer(path_, header());
    writer.write(array(header(), 0, 0));
    EXPECT_EQ(files(), 1u);
    EXPECT_THROW(writer.commit(), std::invalid_argument);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(Checkpoint, TakesTheNameOfNoOther) {
  write(header());
  const auto before = content();
  CheckpointHeader next = header();
  ++next.step;
  {
    CheckpointWriter writer(path_, next);
    write_arrays(writer, next);
    EXPECT_THAT(message_of<SetupError>([&] { writer.commit(); }), HasSubstr("File exists"));
    EXPECT_EQ(content(), before);
  }
  EXPECT_EQ(content(), before);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Checkpoint, IsNotThereWhereItIsFinishedAndNotCommitted) {
  CheckpointHeader next = header();
  ++next.step;
  {
    CheckpointWriter writer(path_, next);
    write_arrays(writer, next);
    writer.finish();
  }
  EXPECT_EQ(files(), 0u);
  CheckpointWriter writer(path_, next);
  EXPECT_THROW(writer.finish(), std::invalid_argument);
  write_arrays(writer, next);
  writer.finish();
  writer.finish();
  writer.commit();
  EXPECT_EQ(reader().header(), next);
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(writer.commit(), std::invalid_argument);
}

TEST_F(Checkpoint, HasTheModeOfAnOrdinaryFile) {
  for (const mode_t mask : {022U, 077U, 02U}) {
    const mode_t before = umask(mask);
    write(header());
    umask(before);
    struct stat status {};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0666U & ~mask);
  }
}

TEST_F(Checkpoint, IsWrittenNoFurtherWhereItHasFailed) {
  std::filesystem::create_directory(path_);
  {
    CheckpointWriter writer(path_, header());
    write_arrays(writer, header());
    EXPECT_THROW(writer.commit(), SetupError);
    EXPECT_THROW(writer.commit(), std::invalid_argument);
    EXPECT_THROW(writer.finish(), std::invalid_argument);
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(Checkpoint, StaysAsItIsWhereAnotherWriterIsKilled) {
  write(header());
  const auto before = content();
  const pid_t pid = fork();
  if (pid == 0) {
    CheckpointWriter writer(path_, header());
    writer.write(array(header(), 0, 0));
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(content(), before);
  write(header());
  EXPECT_EQ(refusal(), "");
}

TEST_F(Checkpoint, IsNotThereWhereTheDiskIsFull) {
  write(header());
  const auto before = content();
  const pid_t pid = fork();
  if (pid == 0) {
    // Longer files fail as on a full disk.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {before.size() - 10, before.size() - 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write(header());
    } catch (const SetupError& error) {
      _exit(std::string(error.what()).find("cannot be written: File too large") ==
            std::string::npos);
    }
    _exit(2);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Checkpoint, NamesTheFileThatCannotBeWrittenOrRead) {
  path_ = (root_ / "missing" / "model.hub").string();
  EXPECT_EQ(message_of<SetupError>([&] { CheckpointWriter(path_, header()); }),
            "checkpoint \"" + path_ + "\" cannot be written: No such file or directory");
  EXPECT_EQ(message_of<SetupError>([&] { reader(); }),
            "checkpoint \"" + path_ + "\" cannot be read: No such file or directory");
  path_ = (root_ / "pipe").string();
  mkfifo(path_.c_str(), 0600);
  EXPECT_THAT(message_of<SetupError>([&] { reader(); }), HasSubstr("it is no regular file"));
}

TEST_F(Checkpoint, IsNotOfAHubWithOtherKeysOrAnotherOptimizer) {
  write(header());
  const CheckpointReader back = reader();
  const auto refusal_of = [&](const std::vector<HubKey>& keys, aggregation::OptimizerRule rule) {
    return message_of<UsageError>([&] { back.require_same_hub(keys, rule); });
  };
  std::vector<HubKey> keys = header().keys;
  constexpr auto kRule = aggregation::OptimizerRule::adamw;
  EXPECT_EQ(refusal_of(keys, kRule), "");
  EXPECT_EQ(refusal_of(keys, aggregation::OptimizerRule::adam),
            "checkpoint: it is of the optimizer adamw, and this hub runs adam");
  keys[1].elements = 999;
  EXPECT_EQ(refusal_of(keys, kRule),
            "checkpoint: it is of other keys: it has \"weight\", 1000 elements of float32 where "
            "this hub has \"weight\", 999 elements of float32");
  keys.pop_back();
  EXPECT_THAT(refusal_of(keys, kRule), testing::EndsWith("where this hub has nothing"));
}

TEST_F(Checkpoint, RefusesAWriterThatMakesNoSense) {
  CheckpointHeader wrong = header();
  wrong.ranges[1].elements = 991;
  EXPECT_THROW(CheckpointWriter(path_, wrong), std::invalid_argument);
  wrong = header();
  wrong.steps.pop_back();
  EXPECT_THROW(CheckpointWriter(path_, wrong), std::invalid_argument);
  CheckpointWriter writer(path_, header());
  EXPECT_THROW(writer.write(std::vector<float>(4)), std::invalid_argument);
  write(header());
  CheckpointReader back = reader();
  std::vector<float> values(4);
  EXPECT_THROW(back.read(values), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control
