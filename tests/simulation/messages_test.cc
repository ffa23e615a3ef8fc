// Messages between nodes that travel in frames, as those of different processes do: over links that
// lose them, through relays, and from whoever can put a frame on a link.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "control/jobs/message_codec.h"
#include "dataplane/host/packet_pool.h"
#include "protocol/bytes.h"
#include "protocol/message_frame.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

class MessagesInFrames : public testing::Test {
 protected:
  void make(const std::string& loss = "0", bool links_are_watched = false,
            bool authenticated = false) {
    SimulationSettings settings = settings_of({{"topology", "bcube:3,2"}, {"loss", loss}});
    settings.messages_pass_the_fabric = true;
    settings.links_are_watched = links_are_watched;
    settings.frames_are_authenticated = authenticated;
    cluster_ = std::make_unique<SimulatedCluster>(settings);
    collective_.count = 5'003;
  }

  static bool admitted(const Trainers& trainers) {
    return std::all_of(trainers.begin(), trainers.end(),
                       [](const auto& trainer) { return trainer->admitted(); });
  }
  Trainers join(const std::vector<bcube::ServerId>& members) {
    Trainers trainers;
    for (const bcube::ServerId server : members) {
      dataplane::TrainerRequest request{"job", 1};
      request.heap_bytes = heap_for(collective_);
      request.options.members = members;
      trainers.push_back(cluster_->join(server, request));
    }
    return trainers;
  }

  // A Leave of the trainer on server `speaks` to a leader on server `to`, in a frame from `source`
  // to [0,0].
  void put_leave(bcube::ServerId source, bcube::ServerId speaks, bcube::ServerId to,
                 std::uint32_t fingerprint, control::Incarnation incarnation = 1) {
    control::JobMessage leave;
    leave.from = {speaks, incarnation, 1};
    leave.to = {to, 1, 0};
    leave.job = cluster_->jobs()[0].id;
    leave.name = "job";
    leave.body = control::Leave{"left", false};
    const auto message =
        control::encode_message({speaks, to, leave}, cluster_->plan().topology().space());
    ASSERT_FALSE(message.empty());
    std::vector<std::uint8_t> bytes(sizeof fingerprint);
    protocol::store_little(bytes.data(), fingerprint);
    bytes.insert(bytes.end(), message.begin(), message.end());
    put(source, incarnation, bytes);
  }

  // These bytes as a message, in a frame to [0,0]. damaged: its last byte.
  void put(bcube::ServerId source, control::Incarnation incarnation,
           const std::vector<std::uint8_t>& bytes, bool damaged = false) {
    protocol::RoutingHeader routing;
    routing.source = static_cast<std::uint16_t>(source);
    const protocol::MessageSplitter splitter({}, routing, 1514, incarnation, 1'000 + ++forged_,
                                             bytes);
    rte_mbuf* frame = frames_.allocate();
    auto* room = rte_pktmbuf_mtod(frame, std::uint8_t*);
    const std::size_t length = splitter.write(0, {room, 1514});
    if (damaged) room[length - 1] ^= 1;
    put(frame, length);
    cluster_->run_for(kSecond);
  }
  void put(rte_mbuf* frame, std::size_t length) {
    rte_pktmbuf_append(frame, static_cast<std::uint16_t>(length));
    cluster_->inject(frame);
  }
  // The first fragment of a long message of server 2's daemon to [0,0], as somebody has recorded
  // it.
  void put_fragment(std::uint64_t number, control::Incarnation incarnation = 1) {
    static const dataplane::ClusterKeys kKeys{control::Secret{1}};  // as of a simulated cluster
    protocol::RoutingHeader routing;
    routing.source = 2;
    const std::vector<std::uint8_t> bytes(2'000);
    const protocol::MessageSplitter splitter({}, routing, 1514, incarnation, number, bytes,
                                             &kKeys.of_servers());
    rte_mbuf* frame = frames_.allocate();
    put(frame, splitter.write(0, {rte_pktmbuf_mtod(frame, std::uint8_t*), 1514}));
    cluster_->run_for(kMillisecond);
  }
  // Of messages to [0,0], by reason: those that are not 0.
  std::map<std::string, std::uint64_t> dropped() {
    const dataplane::FrameDrops drops = cluster_->cluster().nodes().at(0).dropped_messages();
    std::map<std::string, std::uint64_t> counts;
    dataplane::FrameDrops::for_each(
        [&](const dataplane::CounterEntry& entry, std::uint64_t count) {
          if (count != 0) counts[std::string(entry.name)] = count;
        },
        drops);
    return counts;
  }
  bool anyone_is_told(const Trainers& trainers) {
    return std::any_of(trainers.begin(), trainers.end(),
                       [&](const auto& trainer) { return !cluster_->told(*trainer).empty(); });
  }

  dataplane::PacketPool frames_{{.name = "forged", .count = 63, .frame_bytes = 1514, .cache = 0}};
  unsigned forged_ = 0;
  std::unique_ptr<SimulatedCluster> cluster_;
  Collective collective_;
};

TEST_F(MessagesInFrames, BeginAJobAndEndIt) {
  make();
  Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, kSecond));
  allreduce(*cluster_, cluster_->plan(), trainers, collective_);
  for (const auto& trainer : trainers) cluster_->leave(*trainer, dataplane::Departure::orderly);
  trainers.clear();
  EXPECT_TRUE(cluster_->run_until(
      [&] { return cluster_->idle() && cluster_->packets_in_use() == 0; }, 10 * kSecond));
}

TEST_F(MessagesInFrames, AreRepeatedUntilTheyArrive) {
  make("0.2");
  Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, 10 * kSecond));
  cluster_->leave(*trainers[4], dataplane::Departure::death);
  const auto all_know = [&] {
    for (std::size_t i = 0; i < trainers.size(); ++i) {
      if (i != 4 && cluster_->told(*trainers[i]).empty()) return false;
    }
    return true;
  };
  EXPECT_TRUE(cluster_->run_until(all_know, 10 * kSecond));
}

// Between [0,0] and [1,1] they pass [0,1], whose link to [1,1] is down, or [1,0].
TEST_F(MessagesInFrames, FindAWayAroundALinkThatIsDown) {
  make();
  auto& fabric = cluster_->cluster().emulated();
  for (const auto& link : fabric.links()) {
    if (link.server != 1 || link.level != 1) continue;
    fabric.change_impairments({link}, [](dataplane::Impairments impairments) {
      impairments.up = false;
      return impairments;
    });
  }
  const Trainers trainers = join({0, 1, 3, 4});
  EXPECT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, 10 * kSecond));
}

// All of [0,0]'s parallel paths to [2,1] break at relays.
TEST_F(MessagesInFrames, FindAWayAroundTwoLinksThatAreDown) {
  make("0", true);
  auto& fabric = cluster_->cluster().emulated();
  for (const auto& link : fabric.links()) {
    const bool cut = (link.server == 1 && link.level == 1) || (link.server == 6 && link.level == 0);
    if (!cut) continue;
    fabric.change_impairments({link}, [](dataplane::Impairments impairments) {
      impairments.up = false;
      return impairments;
    });
  }
  cluster_->run_for(kSecond);
  const Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, 10 * kSecond));
  allreduce(*cluster_, cluster_->plan(), trainers, collective_);
}

// In that time they would have gone around links that are down.
TEST_F(MessagesInFrames, MayStayAwayForTwelveIntervalsOfGreetings) {
  SimulationSettings settings = settings_of({{"topology", "star:3"}, {"greeting", "500ms"}});
  settings.messages_pass_the_fabric = true;
  settings.links_are_watched = true;
  cluster_ = std::make_unique<SimulatedCluster>(settings);
  Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, kSecond));
  cluster_->run_for(kSecond);  // what begins a job has deadlines of its own
  cluster_->cut_off(2, true);
  cluster_->run_for(5 * kSecond);
  EXPECT_FALSE(anyone_is_told(trainers));
  EXPECT_TRUE(cluster_->run_until(
      [&] {
        return !cluster_->told(*trainers[0]).empty() && !cluster_->told(*trainers[1]).empty();
      },
      3 * kSecond));
}

TEST_F(MessagesInFrames, AreHeardFromTheirSenderAlone) {
  make();
  const Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, kSecond));
  const std::uint32_t fingerprint = cluster_->cluster().fingerprint();
  put_leave(1, 2, 0, fingerprint);      // the frame and what it says are of different servers
  put_leave(2, 2, 1, fingerprint);      // it leads to [0,0], and the message to [0,1]
  put_leave(2, 2, 0, fingerprint + 1);  // of a daemon with other settings
  EXPECT_FALSE(anyone_is_told(trainers));
  allreduce(*cluster_, cluster_->plan(), trainers, collective_);
  put_leave(2, 2, 0, fingerprint);
  EXPECT_TRUE(anyone_is_told(trainers)) << "what it says would have been heeded";
}

TEST_F(MessagesInFrames, AreCountedByTheReasonForWhichTheyAreDropped) {
  using Counts = std::map<std::string, std::uint64_t>;
  make();
  const Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, kSecond));
  EXPECT_EQ(dropped(), Counts());
  const std::uint32_t fingerprint = cluster_->cluster().fingerprint();
  put_leave(1, 2, 0, fingerprint);      // the frame and what it says are of different servers
  put_leave(2, 2, 1, fingerprint);      // it leads to [0,0], and the message to [0,1]
  put_leave(2, 2, 0, fingerprint + 1);  // of a daemon with other settings
  put_leave(2, 2, 0, fingerprint, 7);   // of a daemon that server 2 does not have
  put(2, 1, {1, 2, 3});                 // no room for a fingerprint
  put(2, 1, {1, 2, 3}, true);
  put(9, 1, {1, 2, 3});  // there is no such server
  std::vector<std::uint8_t> unreadable(sizeof fingerprint + 1, 0xff);
  protocol::store_little(unreadable.data(), fingerprint);
  put(2, 1, unreadable);
  EXPECT_EQ(dropped(), (Counts{{"bad_message", 3},
                               {"wrong_cluster", 2},
                               {"stale_message", 1},
                               {"bad_crc", 1},
                               {"bad_fragment", 1}}));
  EXPECT_EQ(cluster_->cluster().nodes().dropped_messages().dropped,
            cluster_->cluster().nodes().at(0).dropped_messages().dropped);
  EXPECT_FALSE(anyone_is_told(trainers));
}

TEST_F(MessagesInFrames, TakeNoPlaceWhereAFragmentOfThemWasRecorded) {
  make("0", false, true);
  const Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, 10 * kSecond));
  const std::uint64_t stale = dropped()["stale_message"];
  for (unsigned i = 0; i < 50; ++i) {
    put_fragment(1 + i % 2);  // has come
    put_fragment(1 + i, 99);  // of a daemon before this one
  }
  cluster_->run_for(2 * kSecond);
  put_fragment(1'000'000);
  EXPECT_EQ(dropped()["incomplete_message"], 0u);
  EXPECT_GE(dropped()["stale_message"], stale + 50);
  EXPECT_EQ(dropped()["bad_mac"], 0u);
  allreduce(*cluster_, cluster_->plan(), trainers, collective_);
}

TEST_F(MessagesInFrames, AreHeardThoughADaemonOfAnotherClusterHasStartedLater) {
  make();
  const Trainers trainers = cluster_->join_all("job", heap_for(collective_));
  ASSERT_TRUE(cluster_->run_until([&] { return admitted(trainers); }, kSecond));
  const std::uint32_t fingerprint = cluster_->cluster().fingerprint();
  put_leave(2, 2, 0, fingerprint + 1, 99);
  EXPECT_FALSE(anyone_is_told(trainers));
  put_leave(2, 2, 0, fingerprint);
  EXPECT_TRUE(anyone_is_told(trainers));
}

}  // namespace
}  // namespace gradcube::simulation
