// The memory of hubs: who pays for it, how long it stays, and what is told where it falls short.

#include <cstddef>
#include <cstdint>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/hub_lifetimes_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

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
  end_makings();
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
