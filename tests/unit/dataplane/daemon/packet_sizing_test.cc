#include "dataplane/daemon/packet_sizing.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "dataplane/engine/hand_over.h"
#include "dataplane/host/packet_memory.h"
#include "tests/unit/dataplane/daemon/sized_settings.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kLeastMbufBytes = 448;  // 128 of mbuf, headroom and header; 64 more

std::uint64_t packets_of(const PacketSizes& sizes) {
  return std::uint64_t{kPacketsPerSegment} * sizes.segments + sizes.answers + sizes.idle;
}

TEST(PacketSizing, LeavesRoomForThePoolsOfAllPollers) {
  for (const char* topology : {"bcube:2,1", "bcube:3,2", "bcube:8,2", "star:128", "star:256"}) {
    control::ClusterSettings settings = settings_of(topology, 1'000'000'000, 9000);
    for (const unsigned lcores : {1U, 2U, 3U, 8U}) {
      const unsigned threads = settings.topology.servers() * settings.topology.levels();
      for (const std::uint64_t memory : {0U, 1'000'000U, 2'000'000'000U}) {
        if (memory != 0) settings.packet_memory_bytes = memory;
        const PacketSizes sizes = packet_sizes(settings, lcores, (threads + lcores - 1) / lcores);
        EXPECT_GE(std::uint64_t{packet_megabytes(settings, lcores)} * 1'000'000,
                  packets_of(sizes) * kLeastMbufBytes * lcores)
            << topology << " on " << lcores << " with " << memory;
      }
    }
  }
}

TEST(PacketSizing, LeavesRoomForTheFramesThatAServerOnInterfacesCopies) {
  for (const char* topology : {"bcube:3,2", "bcube:8,2", "star:256"}) {
    for (const unsigned mtu : {1500U, 9000U}) {
      control::ClusterSettings settings = settings_of(topology, 10'000'000'000, mtu);
      const unsigned threads = settings.topology.levels();
      for (const std::uint64_t memory : {0U, 50'000'000U, 2'000'000'000U}) {
        if (memory != 0) settings.packet_memory_bytes = memory;
        const PacketSizes sizes = packet_sizes(settings, 1, threads, Payloads::copied);
        const std::uint64_t frames = std::uint64_t{sizes.segments} + sizes.received_beside;
        const std::uint64_t bytes = packets_of(sizes) * kLeastMbufBytes +
                                    frames * (full_frame_bytes(mtu) + kLeastMbufBytes);
        EXPECT_GE(std::uint64_t{packet_megabytes(settings, 1, Payloads::copied)} * 1'000'000, bytes)
            << topology << " with " << memory;
        EXPECT_LE(sizes.segments * std::uint64_t{mtu}, memory == 0 ? 256'000'000 : memory);
        EXPECT_GT(sizes.segments, 1'000u);
      }
    }
  }
}

TEST(PacketSizing, LeavesRoomForTheFramesThatComeToAnyPollerOfAServer) {
  for (const unsigned lcores : {2U, 4U}) {
    const control::ClusterSettings settings = settings_of("bcube:4,4", std::nullopt, 9000);
    const unsigned threads = settings.topology.levels() / lcores;
    const PacketSizes alone = packet_sizes(settings, lcores, threads, Payloads::copied);
    const PacketSizes sizes =
        packet_sizes(settings, lcores, threads, Payloads::copied, Steering::uncertain);
    EXPECT_LT(sizes.segments, alone.segments) << "each takes a frame of every poller's memory";
    EXPECT_EQ(sizes.received_beside, alone.received_beside + (lcores - 1) * HandOver::kDepth);
    const std::uint64_t frames = std::uint64_t{lcores} * sizes.segments + sizes.received_beside;
    EXPECT_LE(lcores * sizes.segments * std::uint64_t{settings.mtu}, 256'000'000u);
    const std::uint64_t bytes =
        lcores * (packets_of(sizes) * kLeastMbufBytes +
                  frames * (full_frame_bytes(settings.mtu) + kLeastMbufBytes));
    const std::uint64_t megabytes =
        packet_megabytes(settings, lcores, Payloads::copied, Steering::uncertain);
    EXPECT_GE(megabytes * 1'000'000, bytes);
  }
}

TEST(PacketSizing, DividesThePacketMemoryOfTheSettingsAmongThePollers) {
  control::ClusterSettings settings = settings_of("bcube:3,2", std::nullopt, 9000);
  const PacketSizes chosen = packet_sizes(settings, 2, 9);
  settings.packet_memory_bytes = 10'000'000;
  const PacketSizes given = packet_sizes(settings, 2, 9);
  EXPECT_LT(given.segments, chosen.segments);
  EXPECT_NEAR(2.0 * kPacketsPerSegment * given.segments * kLeastMbufBytes, 10e6, 0.5e6);
  EXPECT_EQ(given.answers, chosen.answers) << "they have memory of their own";
  EXPECT_NEAR(packet_sizes(settings, 4, 9).segments, given.segments / 2.0, 1);
}

TEST(PacketSizing, HasRoomForTheFullWindowsOfAllJobsThatAServerAcceptsWhereTheyAreSmall) {
  const control::ClusterSettings settings = settings_of("bcube:3,2", std::nullopt, 9000);
  constexpr unsigned kFlowsPerThread = 2 * (2 + 2);
  const unsigned full = 9 * kFlowsPerThread * fabric_parameters(settings).window;
  EXPECT_GE(packet_sizes(settings, 2, 9).segments, 64 * full);
}

}  // namespace
}  // namespace gradcube::dataplane
