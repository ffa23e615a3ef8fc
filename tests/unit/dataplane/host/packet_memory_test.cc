// What jobs reserve of a poller's packet memory, and the packets that are made for it.

#include "dataplane/host/packet_memory.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/host/clock.h"

namespace gradcube::dataplane {
namespace {

class PacketMemoryTest : public testing::Test {
 protected:
  VirtualClock clock_{1};
  Poller poller_{clock_, control::Idle::adaptive};
  PacketMemory memory_{{"test", 10'000, 63, 100}, poller_};
  PacketShare& share_ = memory_.add_share(4'000);
  PacketShare& other_ = memory_.add_share(6'000);
};

TEST_F(PacketMemoryTest, IsReservedUntilTheReservationEnds) {
  std::optional<PacketReservation> first = share_.reserve(3'000);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(share_.free(), 1'000u);
  EXPECT_FALSE(share_.reserve(1'001).has_value());
  EXPECT_EQ(other_.free(), 6'000u) << "a share is its engine's alone";
  EXPECT_EQ(memory_.reserved(), 3'000u);
  PacketReservation moved = std::move(*first);
  first.reset();
  EXPECT_EQ(share_.free(), 1'000u);
  moved = PacketReservation();
  EXPECT_EQ(share_.free(), 4'000u);
}

TEST_F(PacketMemoryTest, GrowsWhenAReservationIsCommittedAndKeepsWhatItHasGrown) {
  const std::uint64_t before = memory_.bytes();
  EXPECT_LT(memory_.segments().made(), 1'000u);
  {
    PacketReservation job = *share_.reserve(4'000);
    EXPECT_EQ(memory_.bytes(), before) << "what is reserved need not be there";
    job.commit(1'000);
    EXPECT_EQ(job.segments(), 1'000u);
    EXPECT_EQ(share_.free(), 3'000u) << "the rest is given back";
    EXPECT_GE(memory_.segments().made(), kPacketsPerSegment * 1'000);
    EXPECT_LT(memory_.segments().made(), kPacketsPerSegment * 1'200);
  }
  const std::uint32_t made = memory_.segments().made();
  share_.reserve(900)->commit(900);
  EXPECT_EQ(memory_.segments().made(), made);
}

TEST_F(PacketMemoryTest, ThatWasMadeReadyGrowsForNothingLess) {
  PacketMemory::make_ready({&memory_}, 1'000);
  const std::uint64_t ready = memory_.bytes();
  EXPECT_GE(memory_.segments().made(), kPacketsPerSegment * 1'000);
  EXPECT_EQ(memory_.reserved(), 0u);
  PacketReservation one = *share_.reserve(400);
  PacketReservation two = *other_.reserve(600);
  one.commit(400);
  two.commit(600);
  EXPECT_EQ(memory_.bytes(), ready);
  PacketReservation more = *share_.reserve(1'000);
  more.commit(1'000);
  EXPECT_GT(memory_.bytes(), ready);
}

TEST_F(PacketMemoryTest, HasAPacketForAllThatIsCommitted) {
  PacketReservation one = *share_.reserve(4'000);
  PacketReservation two = *other_.reserve(6'000);
  one.commit(4'000);
  std::vector<rte_mbuf*> out(8'000);
  ASSERT_TRUE(memory_.segments().allocate(out.data(), 8'000));
  out.front()->data_len = 77;
  two.commit(6'000);
  EXPECT_EQ(out.front()->data_len, 77u) << "a packet that is out is not made again";
  std::vector<rte_mbuf*> more(12'000);
  ASSERT_TRUE(memory_.segments().allocate(more.data(), 12'000));
  EXPECT_EQ(memory_.segments().in_use(), 20'000u);
  EXPECT_GE(rte_pktmbuf_tailroom(more.back()), kHeaderBytes);
  EXPECT_EQ(rte_mbuf_refcnt_read(more.back()), 1u);
  for (rte_mbuf* packet : out) rte_pktmbuf_free(packet);
  for (rte_mbuf* packet : more) rte_pktmbuf_free(packet);
  EXPECT_EQ(memory_.segments().in_use(), 0u);
  EXPECT_LE(memory_.segments().made(), memory_.segments().most());
}

TEST_F(PacketMemoryTest, HasAReceivedFrameForEachSegmentThatIsCommitted) {
  EXPECT_EQ(memory_.received(), nullptr) << "ports pass on the packets of their senders";
  PacketMemoryOptions options{"copies", 500, 63, 10};
  options.received_frame_bytes = 1514;
  options.received_beside = 40;
  PacketMemory copies(options, poller_);
  PacketShare& share = copies.add_share(500);
  ASSERT_NE(copies.received(), nullptr);
  EXPECT_GE(copies.received()->made(), 50u);
  EXPECT_LT(copies.received()->made(), 150u);
  EXPECT_GT(copies.bytes_of_segment(), memory_.bytes_of_segment() + 1514);
  PacketReservation job = *share.reserve(500);
  job.commit(500);
  std::vector<rte_mbuf*> frames;
  for (unsigned i = 0; i < 540; ++i) frames.push_back(copies.received()->allocate());
  EXPECT_EQ(std::count(frames.begin(), frames.end(), nullptr), 0);
  for (rte_mbuf* frame : frames) rte_pktmbuf_free(frame);
}

TEST_F(PacketMemoryTest, HasAReceivedFrameForWhatIsCommittedWhereFramesMayComeToAnyPoller) {
  PacketMemoryOptions options{"first", 300, 63, 10};
  options.received_frame_bytes = 1514;
  options.received_segments = 500;
  PacketMemory first(options, poller_);
  options.name = "second";
  options.segments = 200;
  PacketMemory second(options, poller_);
  PacketMemory::receive_for_each_other({&first, &second});
  PacketMemory::make_ready({&first, &second}, 50);
  EXPECT_GE(first.received()->made(), 100u) << "frames for the engines of both";
  EXPECT_LT(first.received()->made(), 200u);
  PacketShare& of_first = first.add_share(300);
  PacketShare& of_second = second.add_share(200);
  EXPECT_GT(first.bytes_of_segment(), 2 * std::uint64_t{1514});
  {
    PacketReservation job = *of_first.reserve(300);
    job.commit(300);
    EXPECT_GE(second.received()->made(), 300u);
    EXPECT_LT(second.segments().made(), kPacketsPerSegment * 200u) << "it sends none of them";
  }
  PacketReservation one = *of_first.reserve(300);
  PacketReservation other = *of_second.reserve(200);
  one.commit(300);
  other.commit(200);
  for (PacketMemory* memory : {&first, &second}) {
    std::vector<rte_mbuf*> frames(500);
    EXPECT_TRUE(memory->received()->allocate(frames.data(), 500));
    for (rte_mbuf* frame : frames) rte_pktmbuf_free(frame);
    EXPECT_LE(memory->received()->made(), memory->received()->most());
  }
}

}  // namespace
}  // namespace gradcube::dataplane
