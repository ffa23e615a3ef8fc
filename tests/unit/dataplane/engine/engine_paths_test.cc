// What an engine does with path probes, its own and those of others: server [0,0] of bcube:3,2,
// turned by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "protocol/crc.h"
#include "protocol/link_frame.h"
#include "tests/unit/dataplane/engine/relay_fixture.h"

namespace gradcube::dataplane {
namespace {

using protocol::FrameError;
using protocol::Hop;
using protocol::PathProbeHeader;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kRate0 = 1'000'000'000;
constexpr std::uint64_t kRate1 = 200'000'000;

class EnginePaths : public RelayTest {
 protected:
  EnginePaths() : RelayTest({.bits_per_second = {kRate0, kRate1}}) {}

  static std::vector<std::uint8_t> probe(const protocol::RoutingHeader& route,
                                         const PathProbeHeader& header) {
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::write_path_probe(bytes, {}, route, 49152, header));
    return bytes;
  }
  Sent only(unsigned port) {
    std::vector<Sent> frames = sent(here_.ports[port]);
    EXPECT_EQ(frames.size(), 1u);
    if (frames.empty()) return {};
    EXPECT_EQ(frames[0].frame.type, protocol::FrameType::path_probe);
    EXPECT_TRUE(protocol::crc_is_right(frames[0].bytes, {}));
    return frames[0];
  }
  std::uint64_t bad_crcs() const {
    return here_.engine->counters().malformed[static_cast<std::size_t>(FrameError::bad_crc)];
  }
};

TEST_F(EnginePaths, ARelayWritesWhatItsTwoLinksHaveLeft) {
  put(here_, 0, probe(routing(1, 6, kThroughHere), {7, false, PathProbeHeader::kUnbounded}));
  poll();
  const Sent passed = only(1);
  EXPECT_EQ(passed.frame.path_probe.number, 7u);
  EXPECT_EQ(passed.frame.path_probe.bits_per_second_left, kRate1);
  EXPECT_EQ(passed.frame.routing.hop_index, 1);
  put(here_, 0, probe(routing(1, 6, kThroughHere), {7, false, 5}));
  poll();
  EXPECT_EQ(only(1).frame.path_probe.bits_per_second_left, 5u);
}

// What it carries is subtracted.
TEST_F(EnginePaths, ARelayThatIsBusyHasLessLeft) {
  for (unsigned i = 0; i < 100; ++i) {
    put(here_, 0, frame(routing(1, 6, kThroughHere)));
    now_ += 100'000;
    poll();
  }
  sent(here_.ports[1]);
  put(here_, 0, probe(routing(1, 6, kThroughHere), {7, false, PathProbeHeader::kUnbounded}));
  poll();
  EXPECT_LT(only(1).frame.path_probe.bits_per_second_left, kRate1);
}

TEST_F(EnginePaths, ARelayPassesAnAnswerOnAsItIs) {
  put(here_, 0, probe(routing(1, 6, kThroughHere), {7, true, kRate0}));
  poll();
  EXPECT_EQ(only(1).frame.path_probe.bits_per_second_left, kRate0);
}

TEST_F(EnginePaths, TheDestinationAnswersTheWayBack) {
  // From [2,1] over [2,0].
  put(here_, 1, probe(routing(7, 0, {{0, 0}, {1, 0}}, 1), {9, false, kRate0}));
  poll();
  const Sent answer = only(1);
  EXPECT_TRUE(answer.frame.path_probe.answer);
  EXPECT_EQ(answer.frame.path_probe.number, 9u);
  EXPECT_EQ(answer.frame.path_probe.bits_per_second_left, kRate1) << "of its own link";
  EXPECT_EQ(answer.frame.routing.source, 0);
  EXPECT_EQ(answer.frame.routing.destination, 7);
  EXPECT_EQ(answer.frame.routing.hop_count, 2);
  EXPECT_EQ(answer.frame.routing.hops[0], (Hop{1, 2}));
  EXPECT_EQ(answer.frame.routing.hops[1], (Hop{0, 1}));
}

TEST_F(EnginePaths, DropsProbesThatAreDamaged) {
  for (const bool relayed : {false, true}) {
    const auto route = relayed ? routing(1, 6, kThroughHere) : routing(1, 0, {{0, 0}});
    const std::vector<std::uint8_t> good = probe(route, {7, false, kRate0});
    // Behind the hops, up to the CRC: the parser checks what comes before.
    for (std::size_t at = good.size() - 18; at < good.size(); ++at) {
      std::vector<std::uint8_t> bad = good;
      bad[at] ^= 0x10;
      const std::uint64_t before = bad_crcs();
      put(here_, 0, bad);
      poll();
      EXPECT_EQ(bad_crcs(), before + 1);
    }
  }
  for (FakePort& port : here_.ports) EXPECT_THAT(sent(port), IsEmpty());
}

TEST_F(EnginePaths, DropsAndCountsWhatLeadsNowhere) {
  put(here_, 0, probe(routing(1, 0, {{0, 0}}), {7, true, kRate0}));         // awaited by nobody
  put(here_, 0, probe(routing(1, 0, {{1, 1}, {0, 0}}, 1), {7, false, 1}));  // not the way here
  put(here_, 0, probe(routing(1, 0, {{9, 1}, {0, 0}}, 1), {7, false, 1}));  // no such level
  put(here_, 0, probe(routing(1000, 0, {{0, 0}}), {7, false, 1}));          // no such server
  poll();
  EXPECT_EQ(dropped(DropReason::stray_probe), 4u);
  for (FakePort& port : here_.ports) EXPECT_THAT(sent(port), IsEmpty());
}

TEST_F(EnginePaths, ProbesAllPathsToAServerThatSomebodyAsksAbout) {
  here_.engine->path_chooser().ask(7);  // [2,1]
  EXPECT_EQ(here_.engine->next_event(), 0);
  poll();
  EXPECT_EQ(here_.engine->counters().path_probes, 2u);
  for (unsigned port = 0; port < 2; ++port) {
    const Sent probe_sent = only(port);
    const protocol::RoutingHeader& there = probe_sent.frame.routing;
    EXPECT_EQ(probe_sent.frame.path_probe.bits_per_second_left, port == 0 ? kRate0 : kRate1);
    ASSERT_EQ(there.hop_count, 2);
    EXPECT_EQ(there.hops[0].level, port);
    EXPECT_EQ(here_.engine->path_chooser().asked(7), nullptr);
    const Hop last{static_cast<std::uint8_t>(port), 0};
    put(here_, port,
        probe(routing(7, 0, {{static_cast<std::uint8_t>(1 - port), 0}, last}, 1),
              {probe_sent.frame.path_probe.number, true, 100 + port}));
    poll();
  }
  const bcube::PathProber::News* news = here_.engine->path_chooser().asked(7);
  ASSERT_NE(news, nullptr);
  ASSERT_EQ(news->paths.size(), 2u);
  EXPECT_EQ(news->paths[0].bits_per_second_left, 100u);
  EXPECT_EQ(news->paths[1].bits_per_second_left, 101u);
}

TEST_F(EnginePaths, AsksAboutDetoursOfNeighboursOverOtherRelaysToo) {
  here_.engine->path_chooser().ask(1);  // [0,1]
  poll();
  EXPECT_EQ(sent(here_.ports[0]).size(), 1u);
  std::map<unsigned, unsigned> detours;
  for (const Sent& probe_sent : sent(here_.ports[1])) {
    ++detours[probe_sent.frame.routing.hops[0].digit];
  }
  EXPECT_THAT(detours, ElementsAre(std::pair(1, 1), std::pair(2, 1)));
}

}  // namespace
}  // namespace gradcube::dataplane
