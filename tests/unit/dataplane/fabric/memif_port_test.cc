// Frames between the two ends of a memif link.
#include <fstream>
#include <sys/stat.h>

#include "control/base/errors.h"
#include "dataplane/fabric/memif/memif_reconnection.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/memif_fixture.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kLongest = 9000 + kEthernetBytes;

TEST_F(MemifTest, CarriesFramesOfEveryLengthBothWays) {
  const End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  std::size_t number = 0;
  // More than the rings have slots.
  for (const std::size_t bytes : {14, 60, 64, 1514, 1515, 2048, 9013, 9014, 82, 9014, 4096, 100}) {
    for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      const std::string sent = frame(bytes, ++number);
      ASSERT_TRUE(send(**from, in_one_packet(sent)));
      EXPECT_EQ(received(**to), Frames{sent}) << bytes;
      const std::string in_parts = frame(std::max<std::size_t>(bytes, 64), ++number);
      ASSERT_TRUE(send(**from, chained(in_parts, 30)));
      EXPECT_EQ(received(**to), Frames{in_parts}) << bytes;
    }
  }
  EXPECT_EQ(a->counts().sent_packets, number / 2);
  EXPECT_EQ(a->counts().sent_bytes, b->counts().received_bytes);
}

TEST_F(MemifTest, KeepsChainsAndShortFramesApartInEveryLapOfTheRing) {
  const End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
  std::uint64_t random = seed;
  for (std::size_t number = 0; number < 500; ++number) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const std::string sent = frame(64 + (random >> 33) % (kLongest - 63), number);
    const bool chain = (random >> 20) % 2 == 0;
    ASSERT_TRUE(send(*b, chain ? chained(sent, 1 + (random >> 40) % 63) : in_one_packet(sent)));
    ASSERT_EQ(received(*a), Frames{sent}) << number;
  }
}

TEST_F(MemifTest, RefusesFramesThatAnMtuDoesNotAllow) {
  const End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  EXPECT_TRUE(send(*a, in_one_packet(frame(13))));
  EXPECT_TRUE(send(*a, chained(frame(kLongest + 1), 60)));
  EXPECT_EQ(a->drop_counts(0).tx_refused, 2u);
  EXPECT_EQ(a->counts().sent_packets, 0u);
  EXPECT_EQ(received(*b), Frames{});
}

TEST_F(MemifTest, KeepsTheQueuesOfAPortApart) {
  const End a = end(Role::listens, 2);
  const End b = end(Role::connects, 2);
  ASSERT_TRUE(joined(a, b));
  EXPECT_TRUE(send(*a, in_one_packet(frame(100, 1)), 1));
  EXPECT_EQ(received(*b, 0), Frames{});
  EXPECT_EQ(received(*b, 1), Frames{frame(100, 1)});
  EXPECT_EQ(a->counts(0).sent_packets, 0u);
  EXPECT_EQ(a->counts(1).sent_packets, 1u);
}

TEST_F(MemifTest, AcceptsWhatItSaidThereWasRoomForAndKeepsTheOrder) {
  const End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  std::size_t sent = 0;
  while (b->transmit_room(0) != 0) {
    ASSERT_TRUE(send(*b, in_one_packet(frame(200, sent++))));
    ASSERT_LT(sent, 100u);
  }
  EXPECT_EQ(sent, 16u + 8u) << "the ring and the backlog";
  EXPECT_FALSE(send(*b, in_one_packet(frame(200, sent))));
  std::size_t seen = 0;
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::string& whole : received(*a)) EXPECT_EQ(whole, frame(200, seen++));
    received(*b);
  }
  EXPECT_EQ(seen, sent);
}

TEST_F(MemifTest, LosesWhatItIsGivenWithoutALink) {
  const End alone = end(Role::listens);
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_GT(alone->transmit_room(0), 0u);
    ASSERT_TRUE(send(*alone, chained(frame(500, i), 50)));
    clock_.advance(EthdevPort::kLinkPatience / 4);  // by which it is known
  }
  received(*alone);
  EXPECT_EQ(alone->drop_counts(0).tx_dropped, 100u);
}

TEST_F(MemifTest, LosesWhatIsNotTakenForLongUntilSomethingIsTakenAgain) {
  const End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  while (b->transmit_room(0) != 0) ASSERT_TRUE(send(*b, in_one_packet(frame(100))));
  clock_.advance(EthdevPort::kPatience / 2);
  received(*b);
  EXPECT_EQ(b->transmit_room(0), 0u);
  clock_.advance(EthdevPort::kPatience);
  received(*b);
  EXPECT_EQ(b->drop_counts(0).tx_dropped, 8u);
  EXPECT_TRUE(send(*b, in_one_packet(frame(100))));
  EXPECT_EQ(b->drop_counts(0).tx_dropped, 9u);
  EXPECT_EQ(received(*a).size(), 16u);
  EXPECT_TRUE(send(*b, in_one_packet(frame(100, 5))));
  EXPECT_EQ(received(*a), Frames{frame(100, 5)});
  EXPECT_EQ(b->drop_counts(0).tx_dropped, 9u);
}

TEST_F(MemifTest, KeepsToItsRate) {
  EthdevPortOptions paced;
  paced.bits_per_second = 100'000'000;
  const End a = end(Role::listens);
  const End b = end(Role::connects, 1, paced);
  ASSERT_TRUE(joined(a, b));
  std::uint64_t passed = 0;
  for (int i = 0; i < 2000; ++i) {  // 100 ms
    clock_.advance(50'000);
    while (b->transmit_room(0) != 0) ASSERT_TRUE(send(*b, in_one_packet(frame(kLongest))));
    for (const std::string& whole : received(*a)) passed += whole.size() + kWireOverheadBytes;
  }
  EXPECT_NEAR(static_cast<double>(passed), 100e6 / 8 * 0.1, 3 * kLongest);
}

TEST_F(MemifTest, AsksForALookTheLaterTheLongerItIsIdle) {
  const End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  const auto pass_frames = [&](int count, Nanoseconds pause) {
    for (int i = 0; i < count; ++i) {
      clock_.advance(pause);
      EXPECT_TRUE(send(*a, in_one_packet(frame(100))));
      EXPECT_EQ(received(*b).size(), 1u);
    }
  };
  pass_frames(50, 10'000);
  EXPECT_EQ(b->next_event(0), clock_.now() + EthdevPort::kShortestLook);
  clock_.advance(8'000'000);
  EXPECT_EQ(b->next_event(0), clock_.now() + 2'000'000) << "a quarter of the idle time";
  clock_.advance(10'000'000'000);
  EXPECT_EQ(b->next_event(0), clock_.now() + EthdevPort::kLongestLook);
  pass_frames(1, 10'000);
  EXPECT_GT(b->next_event(0), clock_.now() + 500'000) << "one frame is not many";
  pass_frames(50, 10'000'000);
  EXPECT_NEAR(static_cast<double>(b->next_event(0) - clock_.now()), 2.5e6, 0.1e6);
  pass_frames(50, 10'000);
  EXPECT_EQ(b->next_event(0), clock_.now() + EthdevPort::kShortestLook);
}

TEST_F(MemifTest, HasALinkAgainWhenTheOtherEndStartsAnew) {
  const End a = end(Role::listens);
  for (std::size_t life = 0; life < 3; ++life) {
    End b = end(Role::connects);
    ASSERT_TRUE(joined(a, b));
    ASSERT_TRUE(send(*a, in_one_packet(frame(100, life))));
    EXPECT_EQ(received(*b), Frames{frame(100, life)});
    ASSERT_TRUE(send(*b, in_one_packet(frame(9000, life))));
    EXPECT_EQ(received(*a), Frames{frame(9000, life)});
    b.close();
    ASSERT_TRUE(await_link(*a, false));
  }
}

TEST_F(MemifTest, HasALinkAgainWhenItIsRestartedAfterTheOtherEndHasStartedAnew) {
  End a = end(Role::listens);
  const End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  for (std::size_t life = 0; life < 3; ++life) {
    a.close();
    ASSERT_TRUE(await_link(*b, false));
    EXPECT_TRUE(send(*b, in_one_packet(frame(100)))) << "it is lost";
    clock_.advance(EthdevPort::kLinkPatience);
    EXPECT_TRUE(received(*b).empty());
    a = end(Role::listens);
    ASSERT_TRUE(b.port->restart());
    ASSERT_TRUE(joined(a, b));
    ASSERT_TRUE(send(*a, in_one_packet(frame(100, life))));
    EXPECT_EQ(received(*b), Frames{frame(100, life)});
    ASSERT_TRUE(send(*b, in_one_packet(frame(9000, life))));
    EXPECT_EQ(received(*a), Frames{frame(9000, life)});
  }
}

TEST_F(MemifTest, IsReconnectedByItselfAsOftenAsTheOtherEndStartsAnew) {
  End a = end(Role::listens);
  const End b = end(Role::connects);
  const MemifReconnection reconnection({b.port.get()});
  for (std::size_t life = 0; life < 3; ++life) {
    ASSERT_TRUE(joined(a, b));
    ASSERT_TRUE(send(*b, in_one_packet(frame(9000, life))));
    EXPECT_EQ(received(*a), Frames{frame(9000, life)});
    a.close();
    ASSERT_TRUE(await_link(*b, false));
    a = end(Role::listens);
  }
}

TEST_F(MemifTest, ListensToItsUserAlone) {
  const mode_t before = umask(0);
  const End a = end(Role::listens);
  EXPECT_EQ(umask(before), 0u) << "as it was";
  struct stat facts {};
  ASSERT_EQ(stat((directory_ / "link").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700u);
}

TEST_F(MemifTest, SaysThatNobodyListens) { EXPECT_THROW(end(Role::connects), control::SetupError); }

// Whether memory of a memif is mapped here.
bool rings_are_mapped() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("memif_region") != std::string::npos) return true;
  }
  return false;
}

TEST_F(MemifTest, KeepsItsMemoryUntilABurstHasEnded) {
  const End a = end(Role::listens);
  End b = end(Role::connects);
  ASSERT_TRUE(joined(a, b));
  BurstFence burst;
  burst.enter();
  std::thread closer([&] { b.close(); });
  // Time enough to unmap them; the driver's thread waits for the burst, so nothing can tell.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(rings_are_mapped());
  burst.leave();
  closer.join();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (rings_are_mapped() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(rings_are_mapped());
}

}  // namespace

}  // namespace gradcube::dataplane
