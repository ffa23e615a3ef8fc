// Frames that claim to be mail of a server of the job: what does not fit is counted and dropped,
// and whatever does spoils no stream of other servers.

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "dataplane/engine/messages/letter.h"
#include "dataplane/host/packet_pool.h"
#include "protocol/bytes.h"
#include "protocol/wire.h"
#include "tests/simulation/forgery.h"
#include "tests/simulation/mail_fixture.h"
#include "tests/simulation/mail_streams.h"
#include "tests/unit/dataplane/packets_in_use.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::simulation {
namespace {

using dataplane::DropReason;
using dataplane::MailKind;

class HostileMailFrames : public testing::Test {
 protected:
  static constexpr unsigned kPeer = 3;  // that the frames claim to be of

  HostileMailFrames() {
    dataplane::PacketPoolOptions options;
    options.name = "hostile";
    options.count = 1023;
    options.frame_bytes = 9014;
    options.cache = 0;
    frames_ = std::make_unique<dataplane::PacketPool>(options);
  }
  void TearDown() override {
    leave_all(cluster_, job_.trainers());
    EXPECT_EQ(dataplane::packets_in_use(*frames_), 0u) << "hostile frames have leaked";
  }

  Forgery segment(MailKind kind, std::uint32_t number, std::size_t bytes, unsigned to = 0) {
    Forgery forgery;
    forgery.routing.source = kPeer;
    forgery.routing.destination = static_cast<std::uint16_t>(to);
    forgery.routing.hops[0] = {0, static_cast<std::uint8_t>(to)};
    forgery.transport.job = cluster_.jobs()[0].id;
    forgery.transport.thread = protocol::kMailThread;
    forgery.is_segment = true;
    forgery.segment.kind = static_cast<std::uint8_t>(kind);
    forgery.segment.collective = number;
    forgery.segment.length = static_cast<std::uint16_t>(bytes);
    forgery.payload.assign(bytes, 0xaa);
    return forgery;
  }
  void inject(unsigned to, const std::vector<std::uint8_t>& bytes) {
    rte_mbuf* packet = frames_->allocate();
    ASSERT_NE(packet, nullptr);
    std::memcpy(rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    cluster_.inject(packet, to);
    cluster_.iterate();
  }
  std::uint64_t dropped(DropReason reason) {
    return cluster_.counters().dropped[static_cast<std::size_t>(reason)];
  }
  // For whatever reason.
  std::uint64_t refused() {
    const dataplane::EngineCounters counters = cluster_.counters();
    std::uint64_t all = counters.duplicates;
    for (const std::uint64_t count : counters.dropped) all += count;
    for (const std::uint64_t count : counters.malformed) all += count;
    return all;
  }
  void expect_dropped(DropReason reason, const Forgery& forgery) {
    const std::uint64_t before = dropped(reason);
    inject(forgery.routing.destination, forgery.bytes(false));
    EXPECT_EQ(dropped(reason), before + 1) << name(reason);
  }

  SimulatedCluster cluster_{settings_of({{"topology", "star:4"}, {"mtu", "1500"}})};
  std::unique_ptr<dataplane::PacketPool> frames_;
  MailJob job_{cluster_, 1 << 20};
};

// All of which the unchanged frame is taken, at last.
TEST_F(HostileMailFrames, AreDroppedForOneFieldThatDoesNotFit) {
  const MailJob::Message message{kPeer, 0, 7, 100};
  const auto receipt = job_.receive(message);
  const auto other = job_.receive({1, 0, 7, 100});
  cluster_.run_for(kMillisecond);
  Forgery whole = segment(MailKind::data, 0, 100);
  whole.segment.root = 1;
  const std::function<void(Forgery&)> unfitting[] = {
      [](Forgery& f) { f.segment.kind = 0; },
      [](Forgery& f) { f.segment.kind = 19; },
      [](Forgery& f) { f.segment.kind = static_cast<std::uint8_t>(MailKind::want); },
      [](Forgery& f) { f.segment.kind = static_cast<std::uint8_t>(MailKind::refusal); },
      [](Forgery& f) { f.segment.kind = static_cast<std::uint8_t>(MailKind::withdrawal); },
      [](Forgery& f) { f.segment.kind = static_cast<std::uint8_t>(MailKind::withdrawn); },
      [](Forgery& f) { f.segment.kind = static_cast<std::uint8_t>(MailKind::absence); },
      [](Forgery& f) { f.segment.collective = 1; },  // of server 1
      [](Forgery& f) { f.segment.collective = 2; },
      [](Forgery& f) { f.segment.collective = UINT32_MAX; },
      [](Forgery& f) { f.segment.count = 1; },
      [](Forgery& f) { f.segment.count = UINT32_MAX; },
      [](Forgery& f) { f.segment.root = 0; },
      [](Forgery& f) { f.segment.root = 2; },
      [](Forgery& f) {
        f.segment.length = 101;
        f.payload.resize(101);
      },
  };
  for (const auto& change : unfitting) {
    Forgery changed = whole;
    change(changed);
    expect_dropped(DropReason::unfitting_mail, changed);
  }
  Forgery path = whole;
  path.transport.step = 1;
  expect_dropped(DropReason::foreign_thread, path);
  Forgery epoch = whole;
  epoch.transport.epoch = 9;
  expect_dropped(DropReason::stale_epoch, epoch);
  Forgery far = whole;
  far.transport.sequence = 1000;
  expect_dropped(DropReason::outside_window, far);
  EXPECT_TRUE(job_.trainers()[0]->take_completions().empty());
  inject(0, whole.bytes(false));
  const auto completions = job_.trainers()[0]->take_completions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].request, receipt.name);
  job_.send({1, 0, 7, 100}, 4);
  job_.finish_well();
  job_.expect_here({1, 0, 7, 100}, other, 4);
}

// Random frames of which most fit in most fields, and some with a byte changed: into channels in
// use, while the other servers exchange messages.
TEST_F(HostileMailFrames, OfAPeerSpoilNoStreamOfOthers) {
  const std::uint64_t seed = protocol::test_seed(5);
  SCOPED_TRACE(protocol::seed_trace(seed));
  dataplane::SeededRandom random(seed);
  const auto below = [&random](std::uint64_t end) { return random.below(end); };
  std::uint64_t taken[kPeer] = {};  // segments of the peer, about
  const auto forge = [&](unsigned to) {
    constexpr MailKind kKinds[] = {MailKind::want,       MailKind::data,      MailKind::refusal,
                                   MailKind::withdrawal, MailKind::withdrawn, MailKind::absence};
    const MailKind kind = kKinds[below(std::size(kKinds))];
    const std::size_t bytes = kind == MailKind::want      ? dataplane::kWantBytes
                              : kind == MailKind::refusal ? dataplane::kRefusalBytes
                              : kind == MailKind::data    ? below(1400)
                                                          : 0;
    Forgery forgery = segment(kind, static_cast<std::uint32_t>(below(8)), bytes, to);
    forgery.segment.count = static_cast<std::uint32_t>(kind == MailKind::data ? below(3) : 0);
    forgery.segment.root = static_cast<std::uint16_t>(kind == MailKind::data ? below(2) : 0);
    forgery.transport.sequence = static_cast<std::uint32_t>(taken[to] + below(6));
    forgery.transport.acknowledged = static_cast<std::uint32_t>(below(8) == 0 ? below(40) : 0);
    forgery.transport.credit = static_cast<std::uint8_t>(below(129));
    forgery.transport.selective = below(8) == 0 ? below(8) : 0;
    if (kind == MailKind::want) {
      forgery.payload[dataplane::kWantFrom] = forgery.payload[dataplane::kWantTo] = 0;
      protocol::store_little(&forgery.payload[dataplane::kWantTag], below(3));
      protocol::store_little(&forgery.payload[dataplane::kWantRoom], below(10'000));
    }
    std::vector<std::uint8_t> frame = forgery.bytes(false);
    if (below(3) == 0) {
      const std::size_t at =
          protocol::kOuterHeaderBytes + below(frame.size() - protocol::kOuterHeaderBytes);
      frame[at] ^= static_cast<std::uint8_t>(1 + below(255));
    }
    return frame;
  };
  // Channels that have carried messages; and what waits for the peer, beside the others' memory.
  for (unsigned rank = 0; rank < kPeer; ++rank) {
    const MailJob::Message to{kPeer, rank, 1, 3000};
    const MailJob::Message from{rank, kPeer, 1, 3000};
    const auto one = job_.receive(to);
    const auto two = job_.receive(from);
    job_.send(to, rank);
    job_.send(from, rank + 10);
    job_.finish_well();
    job_.expect_here(to, one, rank);
    job_.expect_here(from, two, rank + 10);
  }
  for (unsigned rank = 0; rank < kPeer; ++rank) {
    job_.receive({kPeer, rank, 1, 3000});
    job_.receive({kPeer, rank, 2, 100});
    job_.send({rank, kPeer, 0, 3000}, 1);
    job_.send({rank, kPeer, 1, 3000}, 1);
  }
  const std::uint64_t room = shared::kHeapOffset + (1 << 15);
  const auto unspoilt = [&](unsigned rank) {
    SimulatedTrainer& trainer = *job_.trainers()[rank];
    return std::all_of(trainer.at(room + MailStreams::kRoom),
                       trainer.at(shared::kHeapOffset + (1 << 20)),
                       [](std::uint8_t byte) { return byte == 0; });
  };
  unsigned injected = 0;
  for (unsigned round = 0; round < 40; ++round) {
    MailStreams streams(seed + round, room);
    for (unsigned rank = 0; rank < kPeer; ++rank) streams.add(rank, *job_.trainers()[rank]);
    const auto step = [&](bool acts) {
      const auto to = static_cast<unsigned>(below(kPeer));
      const std::uint64_t before = refused();
      inject(to, forge(to));
      ++injected;
      taken[to] += refused() == before ? 1 : 0;
      bool over = true;
      for (unsigned rank = 0; rank < kPeer; ++rank) {
        for (const auto& completion : job_.trainers()[rank]->take_completions()) {
          // Else it is one of those that wait for the peer: whatever became of it.
          if (completion.request >= MailStreams::kNames) streams.take(rank, completion);
        }
        if (!acts) continue;
        const std::int64_t next = streams.act(rank, cluster_.now());
        cluster_.look_at(next);
        over = over && next == dataplane::kNever;
      }
      return over;
    };
    ASSERT_TRUE(cluster_.run_until([&] { return step(true); }, 10 * kSecond));
    for (unsigned rank = 0; rank < kPeer; ++rank) streams.finish(rank);
    ASSERT_TRUE(
        cluster_.run_until([&] { return step(false) && streams.has_ended(); }, 10 * kSecond));
    for (const std::string& what : streams.judge(false)) ADD_FAILURE() << what;
  }
  for (unsigned rank = 0; rank < kPeer; ++rank) EXPECT_TRUE(unspoilt(rank)) << "rank " << rank;
  EXPECT_GT(injected, 4000u);
  EXPECT_GT(dropped(DropReason::unfitting_mail), 200u);
  EXPECT_GT(dropped(DropReason::bad_acknowledgement), 10u);
  EXPECT_GT(taken[0] + taken[1] + taken[2], 100u);
}

}  // namespace
}  // namespace gradcube::simulation
