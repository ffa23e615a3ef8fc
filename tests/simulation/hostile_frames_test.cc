// Frames from nowhere, put into a server's receive ring as a switch would: each is counted by its
// reason and dropped, and what the servers do with each other stays right.

#include <cstring>
#include <functional>

#include "dataplane/host/packet_pool.h"
#include "protocol/message_frame.h"
#include "protocol/wire.h"
#include "tests/simulation/forgery.h"
#include "tests/simulation/work.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::simulation {
namespace {

using dataplane::DropReason;
using protocol::FrameError;

class HostileFrames : public testing::Test {
 protected:
  HostileFrames() : cluster_(settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}})) {
    collective_.count = 30'000;
    dataplane::PacketPoolOptions options;
    options.name = "hostile";
    options.count = 1023;
    options.frame_bytes = 9014;
    options.cache = 0;
    frames_ = std::make_unique<dataplane::PacketPool>(options);
    trainers_ = cluster_.join_all("victim", heap_for(collective_));
  }
  void TearDown() override {
    leave_all(cluster_, trainers_);
    EXPECT_EQ(dataplane::packets_in_use(*frames_), 0u) << "hostile frames have leaked";
  }

  Forgery forgery() {
    const dataplane::JobFacts job = cluster_.jobs()[0];
    Forgery forgery;
    forgery.routing.source = 1;
    forgery.routing.destination = 0;
    forgery.routing.hops[0] = {0, 0};
    forgery.transport.job = job.id;
    forgery.transport.epoch = static_cast<std::uint16_t>(job.epoch);
    return forgery;
  }
  Forgery forged_segment(protocol::Stage stage, std::uint32_t sequence) {
    Forgery forgery = this->forgery();
    forgery.is_segment = true;
    forgery.transport.stage = stage;
    forgery.transport.sequence = sequence;
    forgery.payload.assign(64, 0xee);
    forgery.segment.length = 64;
    return forgery;
  }

  // One of a daemon's messages, which engines do not take.
  std::vector<std::uint8_t> message() {
    const std::vector<std::uint8_t> content(100, 0x5a);
    const protocol::MessageSplitter splitter({}, forgery().routing, 1514, 1, 1, content);
    std::vector<std::uint8_t> frame(1514);
    frame.resize(splitter.write(0, frame));
    return frame;
  }

  // In pieces of at most `piece` bytes; the first holds `head` bytes.
  void inject(const std::vector<std::uint8_t>& bytes, std::size_t head = SIZE_MAX,
              std::size_t piece = SIZE_MAX) {
    rte_mbuf* whole = nullptr;
    for (std::size_t at = 0; at < bytes.size() || whole == nullptr;) {
      const std::size_t length = std::min(whole == nullptr ? head : piece, bytes.size() - at);
      rte_mbuf* part = frames_->allocate();
      ASSERT_NE(part, nullptr);
      char* room = rte_pktmbuf_append(part, static_cast<std::uint16_t>(length));
      if (length != 0) std::memcpy(room, bytes.data() + at, length);
      at += length;
      if (whole == nullptr) {
        whole = part;
      } else {
        ASSERT_EQ(rte_pktmbuf_chain(whole, part), 0);
      }
    }
    cluster_.inject(whole);
    cluster_.iterate();
  }

  void expect_malformed(FrameError error, const std::vector<std::uint8_t>& bytes) {
    const std::uint64_t before = malformed(error);
    inject(bytes);
    EXPECT_EQ(malformed(error), before + 1) << name(error);
  }
  void expect_dropped(DropReason reason, const Forgery& forgery) {
    const std::uint64_t before = dropped(reason);
    inject(forgery.bytes(false));
    EXPECT_EQ(dropped(reason), before + 1) << name(reason);
  }
  std::uint64_t malformed(FrameError error) {
    return cluster_.counters().malformed[static_cast<std::size_t>(error)];
  }
  std::uint64_t dropped(DropReason reason) {
    return cluster_.counters().dropped[static_cast<std::size_t>(reason)];
  }
  void demand_checksums() {
    for (bcube::ServerId server = 0; server < cluster_.servers(); ++server) {
      for (const auto& at : cluster_.cluster().engines(server)) {
        at.engine->set_checksums(true, true);
      }
    }
  }

  // An all-reduce into which a frame is injected before each iteration.
  void allreduce_amid(const std::function<void()>& hostility) {
    for (const auto& trainer : trainers_) fill_and_submit(*trainer, collective_);
    EXPECT_TRUE(cluster_.run_until(
        [&] {
          hostility();
          return all_idle(trainers_);
        },
        kSecond));
    expect_right(cluster_, trainers_, collective_);
  }

  SimulatedCluster cluster_;
  Collective collective_;
  std::unique_ptr<dataplane::PacketPool> frames_;
  Trainers trainers_;
};

TEST_F(HostileFrames, ThatAreNoFramesAreCountedByWhatIsWrongWithThem) {
  constexpr std::size_t kRouting = protocol::kOuterHeaderBytes;
  const std::vector<std::uint8_t> good = forgery().bytes(true);
  const auto with = [&](std::size_t at, std::uint8_t byte) {
    std::vector<std::uint8_t> bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{13}, std::size_t{41}}) {
    expect_malformed(FrameError::too_short,
                     {good.begin(), good.begin() + static_cast<long>(length)});
  }
  expect_malformed(FrameError::bad_length, {good.begin(), good.end() - 1});
  expect_malformed(FrameError::not_gradcube, with(12, 0x86));
  expect_malformed(FrameError::not_gradcube, with(23, 6));
  expect_malformed(FrameError::bad_checksum, with(22, 1));
  expect_malformed(FrameError::bad_version, with(kRouting, 0x12));
  const auto of_type = [&](unsigned type) {
    return with(kRouting, static_cast<std::uint8_t>(protocol::kVersion << 4 | type));
  };
  expect_malformed(FrameError::bad_type, of_type(15));
  expect_malformed(FrameError::bad_length, of_type(6));
  expect_malformed(FrameError::unsupported_type, message());
  expect_malformed(FrameError::bad_hops, with(kRouting + 1, 0));
  Forgery own = forgery();
  own.routing.source = 0;
  expect_malformed(FrameError::bad_address, own.bytes(true));
  Forgery longer = forged_segment(protocol::Stage::aggregation, 0);
  longer.segment.length = 65;
  expect_malformed(FrameError::bad_length, longer.bytes(true));
  allreduce(cluster_, trainers_, collective_);
}

TEST_F(HostileFrames, ThatDoNotFitTheClusterAreCountedByWhatDoesNotFit) {
  const auto with = [&](const std::function<void(Forgery&)>& change) {
    Forgery forgery = this->forgery();
    change(forgery);
    return forgery;
  };
  expect_dropped(DropReason::not_for_this_server,
                 with([](Forgery& f) { f.routing.destination = 3; }));
  // The second hop leads to this server itself.
  expect_dropped(DropReason::no_such_hop, with([](Forgery& f) { f.routing.hop_count = 2; }));
  expect_dropped(DropReason::unknown_job, with([](Forgery& f) { f.transport.job ^= 0x100; }));
  for (std::uint32_t index = 1; index < 256; ++index) {
    expect_dropped(DropReason::unknown_job, with([&](Forgery& f) { f.transport.job ^= index; }));
  }
  expect_dropped(DropReason::stale_epoch, with([](Forgery& f) { ++f.transport.epoch; }));
  expect_dropped(DropReason::foreign_thread, with([](Forgery& f) { f.transport.thread = 50; }));
  expect_dropped(DropReason::not_a_neighbour, with([](Forgery& f) { f.routing.source = 3; }));
  expect_dropped(DropReason::not_a_neighbour, with([](Forgery& f) { f.routing.source = 60'000; }));
  expect_dropped(DropReason::bad_acknowledgement,
                 with([](Forgery& f) { f.transport.acknowledged = 1000; }));
  expect_dropped(DropReason::bad_acknowledgement,
                 with([](Forgery& f) { f.transport.selective = ~std::uint64_t{0}; }));
  expect_dropped(DropReason::bad_acknowledgement, with([](Forgery& f) { f.transport.held = 1; }));
  expect_dropped(DropReason::outside_window, forged_segment(protocol::Stage::aggregation, 500));
  allreduce(cluster_, trainers_, collective_);
}

TEST_F(HostileFrames, WhosePayloadIsScatteredAreDropped) {
  Forgery forgery = forged_segment(protocol::Stage::aggregation, 0);
  inject(forgery.bytes(false), protocol::kSegmentHeaderBytes, 10);
  EXPECT_EQ(dropped(DropReason::scattered_payload), 1u);
  inject(forgery.bytes(false), protocol::kSegmentHeaderBytes - 1, 10);
  EXPECT_EQ(malformed(FrameError::too_short), 1u);
  allreduce(cluster_, trainers_, collective_);
}

TEST_F(HostileFrames, WithoutTheRightChecksumAreDroppedWhereItIsDemanded) {
  demand_checksums();
  expect_malformed(FrameError::bad_crc, forgery().bytes(false));
  std::vector<std::uint8_t> damaged = forged_segment(protocol::Stage::aggregation, 0).bytes(true);
  damaged.back() ^= 1;
  expect_malformed(FrameError::bad_crc, damaged);
  allreduce(cluster_, trainers_, collective_);
}

TEST_F(HostileFrames, OfRandomBytesDisturbNoCollective) {
  dataplane::SeededRandom random(11);
  unsigned injected = 0;
  allreduce_amid([&] {
    if (++injected > 3000) return;
    std::vector<std::uint8_t> bytes(random.below(300));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    inject(bytes);
  });
}

TEST_F(HostileFrames, WithAnyBitFlippedDisturbNoCollectiveUnderChecksums) {
  demand_checksums();
  // A segment that would spoil a sum, were it ever taken: only its CRC speaks against it.
  std::vector<std::uint8_t> bytes = forged_segment(protocol::Stage::aggregation, 0).bytes(true);
  std::size_t bits = (bytes.size() - protocol::kOuterHeaderBytes) * 8;
  const auto flip_next = [&] {
    if (bits == 0) return;
    const std::size_t bit = protocol::kOuterHeaderBytes * 8 + --bits;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    inject(bytes);
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
  };
  while (bits != 0) allreduce_amid(flip_next);
  EXPECT_GE(malformed(FrameError::bad_crc), 64u * 8) << "the payload's bits alone";
}

TEST_F(HostileFrames, OfAStrangerDisturbNoCollective) {
  unsigned injected = 0;
  dataplane::SeededRandom random(12);
  allreduce_amid([&] {
    if (++injected > 3000) return;
    Forgery forgery = forged_segment(
        random.below(2) == 0 ? protocol::Stage::aggregation : protocol::Stage::broadcast,
        static_cast<std::uint32_t>(random.next()));
    forgery.routing.source = static_cast<std::uint16_t>(1 + random.below(3));
    switch (random.below(3)) {
      case 0:
        forgery.transport.epoch =
            static_cast<std::uint16_t>(forgery.transport.epoch + 1 + random.below(1000));
        break;
      case 1:
        forgery.transport.job ^= static_cast<std::uint32_t>(1 + random.below(UINT32_MAX));
        break;
      default:
        forgery.transport.thread = static_cast<std::uint8_t>(2 + random.below(100));
        break;
    }
    inject(forgery.bytes(false));
  });
}

}  // namespace
}  // namespace gradcube::simulation
