#include "dataplane/daemon/fabric_sizing.h"

#include <gtest/gtest.h>
#include <rte_ether.h>
#include <string>
#include <vector>

#include "control/base/units.h"
#include "control/plan/base/byte_range.h"
#include "dataplane/daemon/embedded_sizing.h"
#include "dataplane/engine/flows/unasked_room.h"
#include "dataplane/fabric/udp/datagram.h"
#include "protocol/wire.h"
#include "tests/unit/dataplane/daemon/sized_settings.h"

namespace gradcube::dataplane {
namespace {

TEST(FabricSizing, FillsTheMtuWithWholeUnitsBesideTheLongestRoute) {
  const struct {
    const char* topology;
    unsigned hops;
  } clusters[] = {{"star:4", 1},    {"bcube:4,1", 1}, {"bcube:3,2", 4},
                  {"bcube:2,5", 7}, {"bcube:2,6", 8}, {"bcube:2,7", 8}};
  for (const auto& cluster : clusters) {
    SCOPED_TRACE(cluster.topology);
    // Datagrams leave less of the least MTU.
    for (unsigned mtu = mtu_of_frames(control::kMinMtu, true, true); mtu <= control::kMaxMtu;
         ++mtu) {
      const FabricParameters parameters =
          fabric_parameters(settings_of(cluster.topology, std::nullopt, mtu));
      const std::size_t packet =
          parameters.segment_bytes +
          protocol::header_bytes(protocol::FrameType::segment, cluster.hops) - RTE_ETHER_HDR_LEN;
      ASSERT_EQ(parameters.segment_bytes % control::kUnitBytes, 0u);
      ASSERT_LE(packet, mtu);
      ASSERT_GT(packet + control::kUnitBytes, mtu) << "another unit would fit";
    }
  }
}

TEST(FabricSizing, KeepsTheSegmentsOfTheUsualMtusWithRoomForDetours) {
  EXPECT_EQ(fabric_parameters(settings_of("bcube:3,2", std::nullopt, 1500)).segment_bytes, 1408u);
  EXPECT_EQ(fabric_parameters(settings_of("bcube:3,2", std::nullopt, 9000)).segment_bytes, 8896u);
}

TEST(FabricSizing, BoundsWhatAFlowHasOnItsWayWithoutARateInBytes) {
  const auto window = [](unsigned mtu) {
    return fabric_parameters(settings_of("bcube:3,2", std::nullopt, mtu)).window;
  };
  EXPECT_EQ(window(1500), 16u);
  EXPECT_EQ(window(6000), 12u);
  EXPECT_EQ(window(9000), 8u);
  EXPECT_EQ(window(control::kMaxMtu), 8u);
}

TEST(FabricSizing, MakesSegmentsAsLongAsTheFramesThatPortsCut) {
  control::ClusterSettings settings = settings_of("star:9", std::nullopt, 1500);
  settings.fabric = control::FabricKind::udp;
  EXPECT_EQ(fabric_parameters(settings).credit[0].packets_of_segment, 1u);
  settings.frame_mtu = mtu_of_frames(1500, false, false);
  const FabricParameters parameters = fabric_parameters(settings);
  EXPECT_EQ(
      parameters.segment_bytes,
      fabric_parameters(settings_of("star:9", std::nullopt, settings.frame_mtu)).segment_bytes);
  EXPECT_EQ(parameters.window, 8u);
  EXPECT_EQ(parameters.credit[0].window_that_shrinks, 8u);
  EXPECT_EQ(parameters.credit[0].packets_of_segment, 6u);
}

TEST(FabricSizing, KeepsTimersInOrderAtEveryRateThatIsAccepted) {
  for (std::uint64_t rate = control::kLeastRate; rate <= control::kMostRate; rate *= 10) {
    const FabricParameters parameters =
        fabric_parameters(settings_of("bcube:3,2", rate, control::kMaxMtu));
    const protocol::RecoverySettings& recovery = parameters.flows.recovery;
    SCOPED_TRACE(control::format_rate(rate));
    EXPECT_GT(parameters.flows.acknowledgement.delay, 0);
    EXPECT_LT(parameters.flows.acknowledgement.delay, recovery.probe_floor);
    EXPECT_LT(recovery.probe_floor, recovery.rto_floor);
    EXPECT_LE(parameters.flows.acknowledgement.every, parameters.window);
    for (unsigned level = 0; level < 2; ++level) {
      EXPECT_GE(parameters.uplink_depth[level], 3u);
      EXPECT_GE(parameters.credit[level].budget_bytes, parameters.credit[level].segment_bytes);
    }
  }
}

TEST(FabricSizing, GrantsAFlowInARoundWhatThePortPassesIn100us) {
  const auto credit = fabric_parameters(settings_of("bcube:3,2", 10'000'000'000, 9000)).credit;
  ASSERT_EQ(credit.size(), 2u);
  for (const protocol::CreditSettings& of_port : credit) EXPECT_EQ(of_port.round_bytes, 125'000u);
}

TEST(FabricSizing, GrantsLessThanTheQueueWhereThatTakesLong) {
  control::ClusterSettings settings = settings_of("bcube:3,2", 20'000'000, 1500);
  settings.queue_bytes = 256'000;  // 102.4 ms
  EXPECT_EQ(fabric_parameters(settings).credit[0].budget_bytes, 125'000u) << "50 ms";
  settings.mtu = 9000;
  const auto slow = fabric_parameters(settings).credit[0];
  EXPECT_EQ(slow.budget_bytes, 14u * slow.segment_bytes) << "few, but enough";
  settings.queue_bytes = 64'000;
  const std::uint64_t of_the_queue = fabric_parameters(settings).credit[0].budget_bytes;
  EXPECT_LT(of_the_queue, 64'000u);
  const auto fast = fabric_parameters(settings_of("bcube:3,2", 200'000'000, 9000)).credit[0];
  EXPECT_EQ(fast.budget_bytes - of_the_queue, 64'000u) << "all of a queue of 128 KB";
}

// A lease that ended before would make room for more than the queue holds.
TEST(FabricSizing, LeasesCreditForLongerThanAFullQueueTakes) {
  control::ClusterSettings settings = settings_of("bcube:3,2", 20'000'000, 9000);
  settings.queue_bytes = 256'000;  // 102.4 ms
  for (const protocol::CreditSettings& of_port : fabric_parameters(settings).credit) {
    EXPECT_EQ(of_port.lease, 204'800'000);
  }
  const auto fast = fabric_parameters(settings_of("bcube:3,2", 10'000'000'000, 9000)).credit;
  EXPECT_EQ(fast[0].lease, protocol::CreditSettings().lease);
}

TEST(FabricSizing, TunesThePortsOfAServerByTheRateOfItsOwn) {
  control::ClusterSettings settings = settings_of("star:9", 200'000'000, 9000);
  const FabricParameters plain = fabric_parameters(settings);
  control::apply_setting(settings, "rate", "200mbit,server8=4x20gbit", "rate");
  const FabricParameters parameters = fabric_parameters(settings);
  EXPECT_EQ(credit_of(settings, parameters, 0)[0].round_bytes, 2'500u);
  EXPECT_EQ(credit_of(settings, parameters, 8)[0].round_bytes, 250'000u);
  EXPECT_EQ(plain.credit[0].budget_bytes - parameters.credit[0].budget_bytes,
            3 * UnaskedRoom::kBytes)
      << "the server sends unasked by each of its ports";
  EXPECT_EQ(parameters.flows.recovery.probe_floor, plain.flows.recovery.probe_floor);
  const EmbeddedFabricOptions options = embedded_fabric_options(settings, parameters, 1, {0, 8});
  EXPECT_EQ(options.own_ports.at(8).bits_per_second, 20'000'000'000u);
  EXPECT_GT(options.own_ports.at(8).uplink_depth, options.levels[0].uplink_depth);
  control::apply_setting(settings, "rate", "200mbit,server8=2mbit", "rate");
  EXPECT_GT(fabric_parameters(settings).flows.recovery.probe_floor,
            plain.flows.recovery.probe_floor)
      << "a flow may end at the slow port";
}

TEST(FabricSizing, TunesPortsByTheirOwnRateAndFlowsByTheSlowest) {
  control::ClusterSettings settings = settings_of("bcube:3,2", std::nullopt, 9000);
  settings.rates = control::LinkRates(std::vector<std::uint64_t>{10'000'000'000, 100'000'000});
  const FabricParameters mixed = fabric_parameters(settings);
  const FabricParameters fast = fabric_parameters(settings_of("bcube:3,2", 10'000'000'000, 9000));
  const FabricParameters slow = fabric_parameters(settings_of("bcube:3,2", 100'000'000, 9000));
  EXPECT_EQ(mixed.uplink_depth[0], fast.uplink_depth[0]);
  EXPECT_EQ(mixed.uplink_depth[1], slow.uplink_depth[1]);
  EXPECT_GT(mixed.uplink_depth[0], mixed.uplink_depth[1]);
  EXPECT_EQ(mixed.credit[0].round_bytes, 125'000u);
  EXPECT_EQ(mixed.credit[1].round_bytes, 1'250u);
  EXPECT_EQ(mixed.credit[0].budget_bytes, mixed.credit[1].budget_bytes);
  EXPECT_EQ(mixed.flows.acknowledgement.delay, slow.flows.acknowledgement.delay);
  EXPECT_EQ(mixed.flows.recovery.acknowledge_delay, slow.flows.recovery.acknowledge_delay);
  EXPECT_EQ(mixed.flows.recovery.probe_floor, slow.flows.recovery.probe_floor);
  EXPECT_EQ(mixed.flows.recovery.rto_floor, slow.flows.recovery.rto_floor);
  EXPECT_GT(slow.flows.recovery.probe_floor, fast.flows.recovery.probe_floor);
  EXPECT_EQ(mixed.window, fast.window);
  EXPECT_EQ(mixed.block_bytes, fast.block_bytes);

  const EmbeddedFabricOptions fabric = embedded_fabric_options(settings, mixed, 2, {0});
  ASSERT_EQ(fabric.levels.size(), 2u);
  EXPECT_EQ(fabric.levels[0].bits_per_second, 10'000'000'000u);
  EXPECT_EQ(fabric.levels[1].bits_per_second, 100'000'000u);
  EXPECT_EQ(fabric.levels[0].uplink_depth, mixed.uplink_depth[0]);
  EXPECT_EQ(fabric.levels[1].uplink_depth, mixed.uplink_depth[1]);
  EXPECT_EQ(fabric.link.queue_bytes, settings.queue_bytes);
}

TEST(FabricSizing, GivesUplinksOfATreeRoomForEachServerBelow) {
  control::ClusterSettings settings = settings_of("tree:4x2", 100'000'000, 9000);
  settings.oversubscription = 2;
  const FabricParameters parameters = fabric_parameters(settings);
  ASSERT_EQ(parameters.credit.size(), 1u);
  const EmbeddedFabricOptions fabric = embedded_fabric_options(settings, parameters, 1, {0});
  ASSERT_EQ(fabric.levels.size(), 1u);
  EXPECT_EQ(fabric.levels[0].bits_per_second, 100'000'000u);
  ASSERT_EQ(fabric.trunks.size(), 1u);
  EXPECT_EQ(fabric.trunks[0].places, 4u);
  EXPECT_EQ(fabric.trunks[0].link.bits_per_second, 200'000'000u);
  EXPECT_EQ(fabric.trunks[0].link.queue_bytes, 4 * settings.queue_bytes);
  EXPECT_EQ(fabric.trunks[0].link.mark_bytes, 4 * settings.ecn_threshold());
  // Flows wait as long as behind a link with a server's share of the uplink.
  const FabricParameters half = fabric_parameters(settings_of("star:8", 50'000'000, 9000));
  EXPECT_EQ(parameters.flows.recovery.probe_floor, half.flows.recovery.probe_floor);
  EXPECT_EQ(parameters.credit[0].lease, half.credit[0].lease);
  const auto unlimited = settings_of("tree:4x2", std::nullopt, 9000);
  EXPECT_TRUE(
      embedded_fabric_options(unlimited, fabric_parameters(unlimited), 1, {0}).trunks.empty());
}

TEST(FabricSizing, LetsWindowsShrinkWhereOthersUseTheNetworkAndNothingHasARate) {
  control::ClusterSettings settings = settings_of("star:9", std::nullopt, 9000);
  EXPECT_EQ(fabric_parameters(settings).credit[0].window_that_shrinks, 0u);
  settings.fabric = control::FabricKind::udp;
  const FabricParameters shared = fabric_parameters(settings);
  EXPECT_EQ(shared.credit[0].window_that_shrinks, shared.window);
  settings.rates = control::LinkRates(1'000'000'000);
  EXPECT_EQ(fabric_parameters(settings).credit[0].window_that_shrinks, 0u);
}

TEST(FabricSizing, GreetsOftenOnlyWherePollersHaveCoresOfTheirOwn) {
  const auto interval = [](const control::ClusterSettings& settings, Payloads payloads) {
    return fabric_parameters(settings, payloads).greeting_interval;
  };
  const protocol::Nanoseconds millisecond = protocol::kMillisecond;
  control::ClusterSettings settings = settings_of("bcube:3,2", std::nullopt, 9000);
  EXPECT_EQ(interval(settings, Payloads::copied), 80 * millisecond) << "a poller that sleeps";
  settings.idle = control::Idle::spin;
  EXPECT_EQ(interval(settings, Payloads::copied), 10 * millisecond);
  EXPECT_EQ(interval(settings, Payloads::referenced), 80 * millisecond) << "beside its trainers";
  for (const control::FabricKind bed : {control::FabricKind::memif, control::FabricKind::veth}) {
    settings.fabric = bed;
    EXPECT_EQ(interval(settings, Payloads::copied), 80 * millisecond) << "nine daemons on a host";
  }
  settings.greeting_ns = 20 * millisecond;
  EXPECT_EQ(interval(settings, Payloads::copied), 20 * millisecond) << "as the settings say";
}

// Messages must have had time to go around links that are down.
TEST(FabricSizing, GivesADaemonUpAfterManyIntervalsOfGreetingsWithinOneToTenSeconds) {
  const protocol::Nanoseconds millisecond = protocol::kMillisecond;
  const auto silent_after = [](protocol::Nanoseconds greeting) {
    control::ClusterSettings settings = settings_of("bcube:3,2", std::nullopt, 9000);
    settings.greeting_ns = greeting;
    return fabric_parameters(settings, Payloads::copied).silent_after;
  };
  EXPECT_EQ(silent_after(0), 1000 * millisecond) << "links are not watched";
  EXPECT_EQ(silent_after(80 * millisecond), 1000 * millisecond);
  EXPECT_EQ(silent_after(500 * millisecond), 6000 * millisecond);
  EXPECT_EQ(silent_after(60'000 * millisecond), 10'000 * millisecond);
}

TEST(FabricSizing, SendsAtMostFourThousandGreetingsInASecond) {
  control::ClusterSettings settings = settings_of("bcube:16,2", std::nullopt, 9000);
  constexpr double kSecond = 1e9;
  const auto interval = [&](Payloads payloads) {
    return static_cast<double>(fabric_parameters(settings, payloads).greeting_interval);
  };
  EXPECT_DOUBLE_EQ(256 * 30 * kSecond / interval(Payloads::referenced), 4000);
  settings.idle = control::Idle::spin;
  EXPECT_DOUBLE_EQ(30 * kSecond / interval(Payloads::copied), 3000) << "every 10 ms";
  settings.topology = control::parse_topology("star:256", "test");
  EXPECT_DOUBLE_EQ(255 * kSecond / interval(Payloads::copied), 4000);
}

TEST(FabricSizing, MakesFabricsAsTheSettingsSay) {
  control::ClusterSettings settings = settings_of("bcube:3,2", 1'000'000'000, 9000);
  settings.delay_ns = 5'000;
  settings.queue_bytes = 100'000;
  settings.seed = 9;
  const FabricParameters parameters = fabric_parameters(settings);
  const EmbeddedFabricOptions limited = embedded_fabric_options(settings, parameters, 2, {0, 4});
  EXPECT_EQ(limited.space, settings.topology.space());
  EXPECT_EQ(limited.servers, (std::vector<bcube::ServerId>{0, 4}));
  EXPECT_EQ(limited.port.queues, 2u);
  EXPECT_EQ(limited.port.mtu, 9000u);
  ASSERT_EQ(limited.levels.size(), 2u);
  for (unsigned level = 0; level < 2; ++level) {
    EXPECT_EQ(limited.levels[level].uplink_depth, parameters.uplink_depth[level]);
    EXPECT_EQ(limited.levels[level].bits_per_second, 1'000'000'000u);
  }
  EXPECT_EQ(limited.link.queue_bytes, 100'000u);
  EXPECT_EQ(limited.link.mark_bytes, settings.ecn_threshold());
  EXPECT_EQ(limited.link.delay, 5'000);
  EXPECT_GE(limited.clones.frame_bytes, 9000u + RTE_ETHER_HDR_LEN);
  EXPECT_EQ(limited.seed, 9u);
  settings.rates = {};
  const EmbeddedFabricOptions unlimited =
      embedded_fabric_options(settings, fabric_parameters(settings), 2, {0});
  EXPECT_FALSE(unlimited.link.limited());
  for (const auto& level : unlimited.levels) EXPECT_EQ(level.bits_per_second, 0u);
  EXPECT_EQ(unlimited.link.delay, 5'000);
}

}  // namespace
}  // namespace gradcube::dataplane
