// What trainers are told of the hub that they wish for.

#include "dataplane/daemon/hub/hub_lifetime.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "tests/support/held_memory.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"
#include "tests/unit/dataplane/engine/small_hub.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t kUser = 1000;
constexpr std::uint64_t kQuota = 1'000'000;

class HubLifetimes : public testing::Test {
 protected:
  ~HubLifetimes() override { end_makings(); }
  // Nobody waits for them: their threads end, and then they do.
  void end_makings() {
    for (const auto& making : life_.take_dropped()) {
      while (!making->is_idle()) std::this_thread::yield();
    }
  }

  static HubWish wish(std::uint32_t number = 1,
                      const std::string& table = hub_table(small_keys())) {
    return {.job = "mnist", .server = "[0,1]", .number = number, .table = HubTableSource(table)};
  }
  static std::string table_of(std::uint64_t elements) {
    return hub_table({{"large", elements, aggregation::DataType::float32}});
  }
  void ask(unsigned local, const HubWish& wish) {
    life_.ask(local, wish, {small_hub_shape(2)}, MemoryQuota::Charge(quota_, kUser));
  }
  // What is told now, without waiting.
  std::vector<HubAnswer> work() {
    return life_.work(
        [this](const std::shared_ptr<ServerHub>& hub) {
          ++used_;
          if (use) use(hub);
        },
        is_whole);
  }
  // The next that are told: a hub is made, and tables are compared, in a time of their own.
  std::vector<HubAnswer> answers(std::size_t least = 1) {
    std::vector<HubAnswer> told = work();
    while (told.size() < least) {
      std::this_thread::yield();
      for (HubAnswer& answer : work()) told.push_back(std::move(answer));
    }
    return told;
  }
  void expect_refused(const HubAnswer& answer, std::int32_t code, const std::string& text) {
    EXPECT_EQ(answer.code, code) << answer.text;
    EXPECT_THAT(answer.text, HasSubstr(text));
    EXPECT_EQ(answer.descriptor, -1);
    EXPECT_EQ(answer.bytes, 0U);
  }
  void expect_one_refused(std::int32_t code, const std::string& text) {
    const std::vector<HubAnswer> told = answers();
    ASSERT_EQ(told.size(), 1U);
    expect_refused(told[0], code, text);
  }

  std::function<void(const std::shared_ptr<ServerHub>&)> use;
  HubLifetime::IsWhole is_whole;
  MemoryQuota quota_{kQuota};
  HubLifetime life_;
  unsigned used_ = 0;
};

TEST_F(HubLifetimes, AreMadeForTheFirstWishAndGivenToAll) {
  ask(0, wish());
  ask(1, wish());
  EXPECT_EQ(life_.hub(), nullptr) << "it is made elsewhere, and used in work()";
  const std::vector<HubAnswer> told = answers(2);
  ASSERT_EQ(told.size(), 2U);
  ASSERT_NE(life_.hub(), nullptr);
  EXPECT_EQ(used_, 1U);
  EXPECT_EQ(life_.hub()->number(), 1U);
  EXPECT_EQ(life_.hub()->model().keys(), small_keys());
  for (const unsigned local : {0U, 1U}) {
    EXPECT_EQ(told[local].local, local);
    EXPECT_EQ(told[local].number, 1U);
    EXPECT_EQ(told[local].code, GRADCUBE_OK) << told[local].text;
    EXPECT_EQ(told[local].bytes, 256U + 128U) << "each key begins at a multiple of 64";
    EXPECT_EQ(told[local].descriptor, life_.hub()->memory().descriptor());
  }
  EXPECT_THAT(work(), IsEmpty()) << "all are told once";
}

TEST_F(HubLifetimes, AreGivenToWhoAsksForThemLater) {
  ask(1, wish());
  answers();
  ask(0, wish());
  EXPECT_TRUE(life_.waits(0));
  const std::vector<HubAnswer> told = answers();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].local, 0U);
  EXPECT_EQ(told[0].code, GRADCUBE_OK);
  EXPECT_EQ(used_, 1U);
  EXPECT_FALSE(life_.waits(0));
}

// It is read by a thread of the making, and by none afterwards.
TEST_F(HubLifetimes, AreMadeFromTheMemoryOfATrainerThatHasGone) {
  const std::string table = hub_table(small_keys());
  auto region = std::make_shared<SessionRegion>(1 << 20);
  std::memcpy(region->base() + shared::kHeapOffset, table.data(), table.size());
  const std::weak_ptr<SessionRegion> still_there = region;
  HubWish from_memory = wish();
  from_memory.table =
      HubTableSource(std::exchange(region, nullptr), shared::kHeapOffset, table.size());
  ask(0, std::exchange(from_memory, {}));
  EXPECT_EQ(answers()[0].code, GRADCUBE_OK);
  EXPECT_EQ(life_.hub()->model().keys(), small_keys());
  EXPECT_EQ(*life_.table(), table);
  EXPECT_TRUE(still_there.expired());
}

TEST_F(HubLifetimes, ThatEndWhileTablesAreComparedAreToldToTheirTrainersOnce) {
  ask(0, wish());
  answers();
  ask(1, wish());
  ask(2, wish(1, table_of(7)));
  life_.end(GRADCUBE_EPEER, "a trainer has died");
  const std::vector<HubAnswer> told = work();
  ASSERT_EQ(told.size(), 2U);
  for (const HubAnswer& answer : told) expect_refused(answer, GRADCUBE_EPEER, "has died");
  for (int i = 0; i < 100; ++i) EXPECT_THAT(work(), IsEmpty());
}

TEST_F(HubLifetimes, AreTheSameForAllTrainersOfAServer) {
  ask(0, wish());
  ask(1, wish(1, table_of(7)));
  HubWish other_lane = wish();
  other_lane.lane = 1;
  ask(2, other_lane);
  const std::vector<HubAnswer> told = answers(3);
  for (const HubAnswer& answer : told) {
    if (answer.local == 0) {
      EXPECT_EQ(answer.code, GRADCUBE_OK);
    } else {
      expect_refused(answer, GRADCUBE_EMISMATCH, "another trainer of this server");
    }
  }
  ask(1, wish(1, table_of(7)));
  expect_one_refused(GRADCUBE_EMISMATCH, "another trainer of this server");
}

TEST_F(HubLifetimes, AreOneAtATime) {
  ask(0, wish(1));
  answers();
  ask(0, wish(2));
  expect_one_refused(GRADCUBE_EINVAL, "free it first");
  EXPECT_EQ(life_.hub()->number(), 1U);
}

TEST_F(HubLifetimes, AreOverWhenTheyHaveEndedAndCanBeFollowedByOthers) {
  ask(0, wish(3));
  answers();
  life_.end(GRADCUBE_EINVAL, "it was freed");
  EXPECT_EQ(life_.hub(), nullptr);
  EXPECT_THAT(work(), IsEmpty()) << "nobody waits";
  for (const std::uint32_t number : {1U, 3U}) {
    ask(0, wish(number));
    const std::vector<HubAnswer> told = work();
    ASSERT_EQ(told.size(), 1U);
    expect_refused(told[0], GRADCUBE_EINVAL, "is over");
    EXPECT_EQ(told[0].number, number);
  }
  ask(0, wish(4));
  const std::vector<HubAnswer> told = answers();
  EXPECT_EQ(told[0].code, GRADCUBE_OK) << told[0].text;
  EXPECT_EQ(life_.hub()->number(), 4U);
}

TEST_F(HubLifetimes, AreToldOnlyWhenOthersHaveWhatTheyNeedOfThem) {
  bool whole = false;
  is_whole = [&whole](const ServerHub&) { return whole; };
  ask(0, wish());
  while (used_ == 0) EXPECT_THAT(work(), IsEmpty());
  for (int i = 0; i < 100; ++i) EXPECT_THAT(work(), IsEmpty());
  whole = true;
  const std::vector<HubAnswer> told = work();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].code, GRADCUBE_OK);
}

TEST_F(HubLifetimes, ThatCannotBeForOthersAreToldAlsoToWhoAsksLater) {
  is_whole = [](const ServerHub&) { return false; };
  ask(0, wish());
  while (used_ == 0) EXPECT_THAT(work(), IsEmpty());
  life_.fail(GRADCUBE_ENOMEM, "server [2] has not the memory");
  expect_one_refused(GRADCUBE_ENOMEM, "has not the memory");
  EXPECT_EQ(life_.hub(), nullptr);
  ask(1, wish());
  expect_one_refused(GRADCUBE_ENOMEM, "has not the memory");
}

TEST_F(HubLifetimes, ThatEndWhileTheyAreMadeAreToldToThoseWhoWait) {
  ask(0, wish());
  ask(1, wish());
  life_.end(GRADCUBE_EPEER, "a trainer has died");
  const std::vector<HubAnswer> told = work();
  ASSERT_EQ(told.size(), 2U);
  for (const HubAnswer& answer : told) expect_refused(answer, GRADCUBE_EPEER, "has died");
  for (int i = 0; i < 100; ++i) EXPECT_THAT(work(), IsEmpty());
  EXPECT_EQ(used_, 0U);
  EXPECT_EQ(life_.hub(), nullptr);
}

TEST_F(HubLifetimes, ThatAreMadeAreOverWhenANewerOneIsWishedFor) {
  ask(0, wish(1));
  ask(1, wish(2, table_of(7)));
  const std::vector<HubAnswer> told = answers(2);
  ASSERT_EQ(told[0].local, 0U);
  expect_refused(told[0], GRADCUBE_EINVAL, "hub 1 of the job is over");
  EXPECT_EQ(told[1].local, 1U);
  EXPECT_EQ(told[1].number, 2U);
  EXPECT_EQ(told[1].code, GRADCUBE_OK) << told[1].text;
  EXPECT_EQ(used_, 1U);
  EXPECT_EQ(life_.hub()->number(), 2U);
}

// What was given up takes a thread and memory until it is found to be idle.
TEST_F(HubLifetimes, AreNotMadeWithoutBoundForWhoWaitsForNone) {
  const auto region = std::make_shared<SessionRegion>(1 << 20);
  const std::string table = hub_table(small_keys());
  std::memcpy(region->base() + shared::kHeapOffset, table.data(), table.size());
  HeldMemory tables(region->base() + shared::kHeapOffset, 4096);  // so that all threads are busy
  for (std::uint32_t number = 1; number <= 50; ++number) {
    HubWish unread = wish(number);
    unread.table = HubTableSource(region, shared::kHeapOffset, table.size());
    ask(0, unread);
    life_.end(GRADCUBE_EINVAL, "it was freed");
  }
  unsigned busy = 0;
  for (const HubAnswer& answer : work()) busy += answer.code == GRADCUBE_EAGAIN ? 1 : 0;
  EXPECT_GE(busy, 40U);
  EXPECT_LT(busy, 50U);
  tables.release();
  for (std::uint32_t number = 51;; ++number) {
    ask(0, wish(number));
    const std::vector<HubAnswer> told = answers();
    ASSERT_EQ(told.size(), 1U);
    if (told[0].code == GRADCUBE_OK) break;
    ASSERT_EQ(told[0].code, GRADCUBE_EAGAIN) << told[0].text;
    std::this_thread::yield();
  }
  EXPECT_EQ(used_, 1U);
  end_makings();  // some may still read their tables
}

TEST_F(HubLifetimes, AreRefusedWithWhatIsWrongWithTheirTable) {
  ask(0, wish(1, "rubbish"));
  expect_one_refused(GRADCUBE_EINVAL, "malformed");
  ask(1, wish(1));
  expect_one_refused(GRADCUBE_EINVAL, "malformed");  // who asks later is told the same
  EXPECT_EQ(life_.hub(), nullptr);
  EXPECT_EQ(quota_.used(kUser), 0U);
  ask(0, wish(2));
  EXPECT_EQ(answers()[0].code, GRADCUBE_OK);
}

TEST_F(HubLifetimes, ArePaidForByTheirUserUntilTheyAreGone) {
  ask(0, wish());
  answers();
  EXPECT_GE(quota_.used(kUser), life_.hub()->memory().bytes());
  EXPECT_EQ(quota_.used(kUser), life_.hub()->charged());
  const std::shared_ptr<ServerHub> kept = life_.hub();
  life_.end(GRADCUBE_EINVAL, "it was freed");
  EXPECT_EQ(quota_.used(kUser), kept->charged()) << "an engine may have it still";
}

TEST_F(HubLifetimes, AreNoMoreChargedForWhenTheLastHasThem) {
  ask(0, wish());
  answers();
  life_.end(GRADCUBE_EINVAL, "it was freed");
  EXPECT_NE(quota_.used(kUser), 0U) << "trainers read it";
  life_.forget();
  EXPECT_EQ(quota_.used(kUser), 0U);
}

TEST_F(HubLifetimes, StayAsTheyAreForTheirReadersWhenTheyHaveEnded) {
  ask(0, wish());
  const std::vector<HubAnswer> told = answers();
  const control::Descriptor kept(dup(told[0].descriptor));
  life_.hub()->memory().base()[7] = 77;
  life_.end(GRADCUBE_EPEER, "a trainer has died", 5);
  std::uint8_t byte = 0;
  ASSERT_EQ(pread(kept.get(), &byte, 1, 7), 1);
  EXPECT_EQ(byte, 77);
  shared::HubHeader state{};
  ASSERT_EQ(pread(kept.get(), &state, sizeof(state), static_cast<off_t>(told[0].bytes)),
            static_cast<ssize_t>(sizeof(state)));
  EXPECT_EQ(state.end_code, GRADCUBE_EPEER);
  EXPECT_EQ(state.end_notice, 5U);
  EXPECT_EQ(state.readable, 1U);
  ask(0, wish(2));  // the next one
  answers();
  ASSERT_EQ(pread(kept.get(), &byte, 1, 7), 1);
  EXPECT_EQ(byte, 0) << "and its memory is given back";
}

TEST_F(HubLifetimes, AreKnownByTheTrainersThatHaveFreedThem) {
  ask(0, wish());
  ask(1, wish());
  answers(2);
  life_.freed_by(1);
  EXPECT_TRUE(life_.is_freed_by(1));
  EXPECT_FALSE(life_.is_freed_by(0));
  life_.end(GRADCUBE_EINVAL, "it was freed");
  ask(0, wish(2));
  answers();
  EXPECT_FALSE(life_.is_freed_by(1)) << "the next one";
}

TEST_F(HubLifetimes, GiveTheirPagesBackWhereATrainerKeepsADescriptor) {
  ask(0, wish());
  const std::vector<HubAnswer> told = answers();
  const control::Descriptor kept(dup(told[0].descriptor));
  struct stat file {};
  ASSERT_EQ(fstat(kept.get(), &file), 0);
  EXPECT_GT(file.st_blocks, 0);
  void* mapping = mmap(nullptr, 64, PROT_READ, MAP_SHARED, kept.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  EXPECT_EQ(mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED, kept.get(), 0), MAP_FAILED);
  EXPECT_NE(ftruncate(kept.get(), 0), 0);
  life_.end(GRADCUBE_EINVAL, "it was freed");
  life_.forget();
  ASSERT_EQ(fstat(kept.get(), &file), 0);
  EXPECT_EQ(file.st_blocks, 0);
  EXPECT_EQ(*static_cast<const char*>(mapping), 0);
  munmap(mapping, 64);
}

TEST_F(HubLifetimes, StayForWhoWasEvictedAndDoesNotKnowIt) {
  for (const bool daemon_ends : {false, true}) {
    ask(0, wish(daemon_ends ? 2 : 1));
    const std::vector<HubAnswer> told = answers();
    const control::Descriptor file(dup(told[0].descriptor));
    life_.hub()->memory().base()[7] = 77;
    std::shared_ptr<ServerHub> read = life_.read_by(0);
    life_.end(GRADCUBE_EPEER, "a trainer was evicted");
    EXPECT_EQ(life_.read_by(0), read);
    life_.forget();  // as nobody else is left
    EXPECT_EQ(life_.read_by(0), nullptr);
    std::uint8_t byte = 0;
    ASSERT_EQ(pread(file.get(), &byte, 1, 7), 1);
    EXPECT_EQ(byte, 77);
    EXPECT_EQ(quota_.used(kUser), read->charged());
    if (daemon_ends) read->outlive_daemon();
    read.reset();
    ASSERT_EQ(pread(file.get(), &byte, 1, 7), 1);
    EXPECT_EQ(byte, daemon_ends ? 77 : 0);
    EXPECT_EQ(quota_.used(kUser), 0U);
  }
  ask(0, wish(3));
  answers();
  life_.freed_by(0);
  EXPECT_EQ(life_.read_by(0), nullptr) << "who has freed it reads nothing";
}

TEST_F(HubLifetimes, AreRefusedWhereTheQuotaDoesNotSuffice) {
  MemoryQuota::Charge others(quota_, kUser);
  ASSERT_TRUE(others.set(3 * kQuota / 4));
  ask(0, wish(1, table_of(kQuota / 4)));  // as many float32
  const std::vector<HubAnswer> told = answers();
  ASSERT_EQ(told.size(), 1U);
  expect_refused(told[0], GRADCUBE_ENOMEM, "job \"mnist\": its hub on server [0,1] needs ");
  EXPECT_THAT(told[0].text, HasSubstr("user 1000 may use 1M"));
  EXPECT_THAT(told[0].text, HasSubstr("and use 750K"));
  EXPECT_EQ(quota_.used(kUser), 3 * kQuota / 4) << "nothing is charged for it";
  EXPECT_TRUE(others.set(0));
  ask(0, wish(2));
  EXPECT_EQ(answers()[0].code, GRADCUBE_OK);
}

TEST_F(HubLifetimes, AreRefusedAndGiveTheirChargeBackWhereTheEnginesCannotHaveThem) {
  use = [](const std::shared_ptr<ServerHub>&) {
    throw control::SetupError("there are no packets for it");
  };
  ask(0, wish());
  ask(1, wish());
  const std::vector<HubAnswer> told = answers();
  ASSERT_EQ(told.size(), 2U);
  for (const HubAnswer& answer : told) {
    expect_refused(answer, GRADCUBE_ENOMEM, "there are no packets for it");
  }
  EXPECT_EQ(life_.hub(), nullptr);
  end_makings();  // one may still compare tables
  EXPECT_EQ(quota_.used(kUser), 0U);
}

TEST_F(HubLifetimes, AreRefusedInWordsWhereEnginesHaveNoMemoryForThem) {
  use = [](const std::shared_ptr<ServerHub>&) { throw std::bad_alloc(); };
  ask(0, wish());
  expect_one_refused(
      GRADCUBE_ENOMEM,
      "job \"mnist\": its hub on server [0,1] cannot be made: the host has no memory "
      "left for it");
  EXPECT_EQ(life_.hub(), nullptr);
}

TEST_F(HubLifetimes, AreAnsweredOnceWhereverMemoryEndsForTheAnswers) {
  use = [](const std::shared_ptr<ServerHub>&) { throw control::SetupError("there is no room"); };
  bool got_by = false;
  for (std::uint32_t last = 1; !got_by; ++last) {
    SCOPED_TRACE("without memory from allocation " + std::to_string(last) + " on");
    HubWish first = wish(last);
    first.threads = std::launch::deferred;
    HubWish second = wish(last);
    second.threads = std::launch::deferred;
    ask(0, first);
    ask(1, second);
    std::vector<HubAnswer> told;
    unsigned asked = 0;
    try {
      const trainer::NoMemory none([&] { return ++asked >= last; });
      told = work();
      got_by = asked < last;
    } catch (const std::bad_alloc&) {
    }
    if (told.empty()) told = work();
    ASSERT_EQ(told.size(), 2U);
    for (const unsigned local : {0U, 1U}) {
      EXPECT_EQ(told[local].local, local);
      EXPECT_EQ(told[local].number, last);
      EXPECT_NE(told[local].code, GRADCUBE_OK);
      EXPECT_FALSE(told[local].text.empty());
    }
    EXPECT_THAT(work(), IsEmpty());
  }
}

}  // namespace
}  // namespace gradcube::dataplane
