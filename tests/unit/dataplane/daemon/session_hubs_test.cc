// What trainers say of hubs on their sessions' sockets: wishes, and messages that are none.

#include <cstdint>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "dataplane/daemon/trainers/session_messages.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"
#include "tests/unit/dataplane/daemon/sessions_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kTableAt = shared::kHeapOffset;
constexpr std::uint64_t kConfirmed = shared::kHeapOffset + (1 << 16);

class SessionHubs : public Sessions {
 protected:
  // A job of two servers, each with a trainer; some memory of the first is confirmed, and a table
  // lies there.
  void join() {
    trainer_.hello("job");
    other_.hello("job");
    run(100, [this] { return trainer_.is_welcomed() && other_.is_welcomed(); });
    ASSERT_TRUE(trainer_.take_welcome());
    ASSERT_TRUE(other_.take_welcome());
    trainer_.touch(shared::kHeapOffset, kConfirmed);
    ASSERT_TRUE(trainer_.report_memory(kConfirmed));
    std::optional<shared::Notice> answer;
    run(100, [&] { return (answer = trainer_.confirmation()).has_value(); });
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->request, kConfirmed);
    trainer_.write(kTableAt, table_);
  }
  shared::MakeHub wish(std::uint32_t number = 1) const {
    shared::MakeHub wish{};
    wish.type = shared::MessageType::make_hub;
    wish.number = number;
    wish.offset = kTableAt;
    wish.bytes = table_.size();
    return wish;
  }
  // The answers to all wishes that have come.
  std::vector<shared::Notice> answers(unsigned most) {
    std::vector<shared::Notice> notices;
    run(200, [&] {
      for (std::optional<shared::Notice> each; (each = trainer_.hub_answer()).has_value();) {
        notices.push_back(*each);
      }
      return notices.size() >= most;
    });
    return notices;
  }
  void expect_closed() {
    run(200, [this] { return trainers() == 1; });
    EXPECT_EQ(trainers(), 1U);
    std::string text;
    while (text.empty() && !trainer_.is_closed()) text = trainer_.told();
    EXPECT_THAT(text, HasSubstr("does not understand this trainer"));
    EXPECT_TRUE(trainer_.is_closed());
  }

  std::string table_ = hub_table({{"a", 64, aggregation::DataType::float32}});
  Trainer trainer_{paths_[0]};
  Trainer other_{paths_[1]};
};

TEST_F(SessionHubs, AreAnsweredWithTheirNumber) {
  join();
  ASSERT_TRUE(trainer_.say(wish(5)));
  const std::vector<shared::Notice> told = answers(1);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].number, 5U);
  // The nodes of this test have no engines.
  EXPECT_EQ(told[0].code, GRADCUBE_EINVAL);
  EXPECT_THAT(told[0].text, HasSubstr("does not run on this server"));
}

TEST_F(SessionHubs, EndTheirJobByNameWhereTheDaemonHasNoMemoryToReadAWish) {
  join();
  bool reads = false;
  bool said = false;
  std::string text;
  each_round = [&] { reads = false; };
  const trainer::NoMemory none([&] { return reads; });
  run(100, [&] {
    if (said) return !(text = trainer_.told()).empty();
    reads = said = trainer_.say(wish());
    return false;
  });
  EXPECT_THAT(text, HasSubstr("the daemon has no memory for what this trainer has asked of it"));
  EXPECT_TRUE(trainer_.is_closed());
  run(100, [&] { return !(text = other_.told()).empty(); });
  EXPECT_THAT(text, HasSubstr("the trainer of job \"job\" on server [0]"));
  EXPECT_THAT(text, HasSubstr("found no memory"));
}

TEST_F(SessionHubs, AreAnsweredEachTimeTheyAreWishedFor) {
  join();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(trainer_.say(wish()));
    EXPECT_EQ(answers(1).size(), 1U);
  }
  EXPECT_EQ(trainers(), 2U);
}

TEST_F(SessionHubs, AreAnsweredAlsoWhereTheTrainerHasLeftItsSocketFullOfNotices) {
  join();
  constexpr std::uint32_t kMany = 1000;  // more than a socket has room for
  for (std::uint32_t number = 1; number <= kMany; ++number) {
    server_.notify({0, 1}, make_failure(number, GRADCUBE_EPEER, "failed"));
  }
  ASSERT_TRUE(trainer_.say(wish(5)));
  run(100, [this] { return !trainer_.has_unread(); });
  run(20);
  EXPECT_FALSE(trainer_.hub_answer().has_value());
  while (!trainer_.told().empty()) continue;
  const std::vector<shared::Notice> told = answers(1);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].number, 5U);
}

// The memory is kept as a descriptor of its own.
TEST_F(SessionHubs, AreGivenWithTheirMemoryOnceThereIsRoom) {
  join();
  constexpr std::uint32_t kMany = 1000;
  for (std::uint32_t number = 1; number <= kMany; ++number) {
    server_.notify({0, 1}, make_failure(number, GRADCUBE_EPEER, "failed"));
  }
  const int memory = ::memfd_create("weights", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(memory, 4711), 0);
  server_.give_hub({0, 1}, make_notice(shared::MessageType::hub_made, GRADCUBE_OK, ""), memory);
  ::close(memory);
  while (!trainer_.told().empty()) continue;
  int given = -1;
  run(100, [&] { return (given = trainer_.hub_memory()) >= 0; });
  ASSERT_GE(given, 0);
  struct stat facts {};
  EXPECT_EQ(::fstat(given, &facts), 0);
  EXPECT_EQ(facts.st_size, 4711);
  ::close(given);
}

TEST_F(SessionHubs, ThatThereAreNotCanBeEnded) {
  join();
  for (const std::uint32_t number : {0U, 1U, 7U}) {
    ASSERT_TRUE(trainer_.say(shared::EndHub{shared::MessageType::end_hub, number}));
  }
  ASSERT_TRUE(trainer_.say(wish()));
  EXPECT_EQ(answers(1).size(), 1U);
  EXPECT_EQ(trainers(), 2U);
}

// The table may end with the memory, and be empty.
TEST_F(SessionHubs, MayHaveTheirTableAnywhereInWhatIsConfirmed) {
  join();
  shared::MakeHub at_end = wish(1);
  at_end.offset = kConfirmed - 64;
  at_end.bytes = 64;
  shared::MakeHub empty = wish(2);
  empty.offset = kConfirmed;
  empty.bytes = 0;
  for (const shared::MakeHub& each : {at_end, empty}) {
    ASSERT_TRUE(trainer_.say(each));
    EXPECT_EQ(answers(1).size(), 1U);
  }
  EXPECT_EQ(trainers(), 2U);
}

// How much of a trainer's memory the daemon has looked at, in KiB.
std::uint64_t looked_at(const std::uint8_t* region) {
  const std::string begin = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(region));
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    found = found || line.starts_with(begin);
    if (found && line.starts_with("Rss:")) return std::stoull(line.substr(4));
  }
  return 0;
}

TEST_F(SessionHubs, AreRefusedWithoutALookAtTheirTable) {
  join();
  const std::uint64_t end = shared::kHeapOffset + (4 << 20);
  trainer_.touch(kConfirmed, end);
  ASSERT_TRUE(trainer_.report_memory(end));
  run(100, [&] { return trainer_.confirmation().has_value(); });
  const std::uint8_t* region = nodes_.at(0).region_base({0, 1, 0});
  const std::uint64_t before = looked_at(region);
  ASSERT_NE(before, 0U);
  shared::MakeHub longest = wish();
  longest.offset = end - (2 << 20);
  longest.bytes = 2 << 20;
  ASSERT_TRUE(trainer_.say(longest));
  ASSERT_EQ(answers(1).size(), 1U);
  EXPECT_EQ(looked_at(region), before);
}

class HostileSessionHubs : public SessionHubs {
 protected:
  void expect_closed_by(const std::function<void(shared::MakeHub&)>& change) {
    join();
    shared::MakeHub hostile = wish();
    change(hostile);
    ASSERT_TRUE(trainer_.say(hostile));
    expect_closed();
  }
};

// Each costs a thread and a copy of the table.
TEST_F(HostileSessionHubs, AreClosedWithAWishBeforeTheAnswerToTheOneBefore) {
  join();
  for (std::uint32_t number = 1; number <= 3; ++number) ASSERT_TRUE(trainer_.say(wish(number)));
  expect_closed();
}
TEST_F(HostileSessionHubs, AreClosedWithAnEndThatIsTooShort) {
  join();
  ASSERT_TRUE(trainer_.say(shared::MessageType::end_hub));
  expect_closed();
}
TEST_F(HostileSessionHubs, AreClosedWithTheNumberZero) {
  expect_closed_by([](shared::MakeHub& hub) { hub.number = 0; });
}
TEST_F(HostileSessionHubs, AreClosedWithATableBeforeTheHeap) {
  expect_closed_by([](shared::MakeHub& hub) { hub.offset = shared::kHeapOffset - 64; });
}
TEST_F(HostileSessionHubs, AreClosedWithATableAtAnUnalignedPlace) {
  expect_closed_by([](shared::MakeHub& hub) { ++hub.offset; });
}
TEST_F(HostileSessionHubs, AreClosedWithATableThatBeginsBeyondWhatIsConfirmed) {
  expect_closed_by([](shared::MakeHub& hub) { hub.offset = kConfirmed + 64; });
}
TEST_F(HostileSessionHubs, AreClosedWithATableThatEndsBeyondWhatIsConfirmed) {
  expect_closed_by([](shared::MakeHub& hub) {
    hub.offset = kConfirmed - 64;
    hub.bytes = 65;
  });
}
TEST_F(HostileSessionHubs, AreClosedWithATableWhoseEndHasNoNumber) {
  expect_closed_by([](shared::MakeHub& hub) { hub.bytes = UINT64_MAX - hub.offset + 1; });
}
TEST_F(HostileSessionHubs, AreClosedWithATableAtTheLastPlaceThereIs) {
  expect_closed_by([](shared::MakeHub& hub) { hub.offset = UINT64_MAX - 63; });
}
TEST_F(HostileSessionHubs, AreClosedWithATableOfAnyLength) {
  expect_closed_by([](shared::MakeHub& hub) { hub.bytes = UINT64_MAX; });
}
// Even where so much is confirmed.
TEST_F(HostileSessionHubs, AreClosedWithATableThatIsLongerThanAny) {
  join();
  const std::uint64_t end = shared::kHeapOffset + shared::kMostHubTableBytes + 4096;
  trainer_.touch(kConfirmed, end);
  ASSERT_TRUE(trainer_.report_memory(end));
  run(100, [&] { return trainer_.confirmation().has_value(); });
  shared::MakeHub longest = wish();
  longest.bytes = shared::kMostHubTableBytes;
  ASSERT_TRUE(trainer_.say(longest));
  EXPECT_EQ(answers(1).size(), 1U);
  ++longest.bytes;
  ASSERT_TRUE(trainer_.say(longest));
  expect_closed();
}

TEST_F(HostileSessionHubs, AreClosedWithAWishOfAnotherLength) {
  join();
  struct {
    shared::MakeHub wish;
    std::uint64_t more;
  } longer{wish(), 0};
  ASSERT_TRUE(trainer_.say(longer));
  expect_closed();
}

TEST_F(HostileSessionHubs, AreClosedWithAWishBeforeTheyAreOpen) {
  other_.hello("job");
  ASSERT_TRUE(trainer_.say(wish()));
  run(200, [this] { return trainer_.is_closed() || !trainer_.told().empty(); });
  run(10);
  EXPECT_TRUE(trainer_.is_closed());
}

}  // namespace
}  // namespace gradcube::dataplane
