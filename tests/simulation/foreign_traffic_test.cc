// A switch port that carries others' traffic, too: how much of all that is dropped there, and how
// much of what the others leave is used.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/packet_pool.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

constexpr double kBitsPerSecond = 1e9;
constexpr double kForeignShare = 0.3;

// A server without a job that sends frames of 1,514 bytes to server 0, at random times.
class Foreigner {
 public:
  static constexpr std::uint32_t kFrameBytes = 1514;

  Foreigner(SimulatedCluster& cluster, bcube::ServerId server, dataplane::PacketPool& frames)
      : cluster_(cluster), port_(cluster.cluster().emulated().port(server, 0)), frames_(frames) {}

  void begin() { next_ = cluster_.now() + pause(); }

  // What is due by now and finds room; and the cluster does not sleep over the next.
  void send() {
    while (next_ <= cluster_.now() && port_.transmit_room(0) > 0) {
      send_one();
      next_ += pause();
    }
    cluster_.look_at(next_);
  }

 private:
  static constexpr double kWireBytes = kFrameBytes + dataplane::kWireOverheadBytes;

  // Exponentially distributed.
  std::int64_t pause() {
    const double mean = kWireBytes * 8 / (kForeignShare * kBitsPerSecond) * 1e9;
    const double uniform = (static_cast<double>(random_.next() >> 11) + 1) * 0x1p-53;
    return static_cast<std::int64_t>(-std::log(uniform) * mean);
  }
  void send_one() {
    rte_mbuf* frame = frames_.allocate();
    ASSERT_NE(frame, nullptr);
    char* bytes = rte_pktmbuf_append(frame, kFrameBytes);
    std::memset(bytes, 0, kFrameBytes);
    const auto mac = bcube::embedded_link_address(0, 0).mac;
    std::memcpy(bytes, mac.data(), mac.size());
    ASSERT_EQ(port_.transmit(0, &frame, 1), 1);
  }

  SimulatedCluster& cluster_;
  dataplane::RingPort& port_;
  dataplane::PacketPool& frames_;
  dataplane::SeededRandom random_{7};
  std::int64_t next_ = 0;
};

struct ForeignCase {
  const char* name;
  const char* topology;
  const char* mtu;
  std::vector<bcube::ServerId> members;
  bcube::ServerId foreigner;  // a neighbour of server 0 at level 0
  bool marks = true;
  double most_dropped = 0.001;  // of the frames
};

class ForeignTraffic : public testing::TestWithParam<ForeignCase> {
 protected:
  ForeignTraffic() : cluster_(settings()), foreigner_(cluster_, GetParam().foreigner, frames_) {
    collective_.count = 2'000'000;
    for (const bcube::ServerId server : GetParam().members) {
      dataplane::TrainerRequest request{"job", 1000 + server};
      request.heap_bytes = heap_for(collective_);
      request.options.members = GetParam().members;
      trainers_.push_back(cluster_.join(server, request));
    }
  }

  static SimulationSettings settings() {
    SimulationSettings settings = settings_of(
        {{"topology", GetParam().topology}, {"rate", "1gbit"}, {"mtu", GetParam().mtu}});
    if (!GetParam().marks) settings.cluster.ecn_threshold_bytes = settings.cluster.queue_bytes;
    settings.lcores = 2;
    return settings;
  }

  // The counters of the switch port to server 0.
  dataplane::SwitchPortCounts port() {
    return cluster_.cluster().emulated().switches().front().fabric->counts(0);
  }

  // What an all-reduce brings to each port, with its headers.
  double incoming_bits() {
    const auto members = static_cast<double>(trainers_.size());
    const auto segment =
        static_cast<double>(cluster_.cluster().engines()[0].engine->settings().segment_bytes);
    const double frame = segment + protocol::kMaxHeaderBytes + dataplane::kWireOverheadBytes;
    return static_cast<double>(collective_.bytes()) * 8 * 2 * (members - 1) / members /
           cluster_.cluster().emulated().space().levels() * frame / segment;
  }

  void run_until_idle() {
    for (const auto& trainer : trainers_) fill_and_submit(*trainer, collective_);
    foreigner_.begin();
    EXPECT_TRUE(cluster_.run_until(
        [&] {
          foreigner_.send();
          return all_idle(trainers_);
        },
        60 * kSecond));
  }

  // Outlives the ports and queues that its frames may lie in.
  dataplane::PacketPool frames_{
      {.name = "foreign", .count = 1023, .frame_bytes = Foreigner::kFrameBytes, .cache = 0}};
  SimulatedCluster cluster_;
  Foreigner foreigner_;
  Collective collective_;
  Trainers trainers_;
};

TEST_P(ForeignTraffic, LosesLittleAndTheRestOfThePortIsUsed) {
  run_until_idle();
  const dataplane::SwitchPortCounts before = port();
  const std::int64_t begin = cluster_.now();
  run_until_idle();
  const dataplane::SwitchPortCounts after = port();
  const double seconds = static_cast<double>(cluster_.now() - begin) * 1e-9;

  const auto frames = static_cast<double>(after.forwarded - before.forwarded);
  const auto dropped = static_cast<double>(after.dropped_queue - before.dropped_queue);
  EXPECT_LT(dropped, GetParam().most_dropped * (frames + dropped));
  EXPECT_GT(after.queue_peak_bytes, 96'000u) << "the port was never full";
  EXPECT_EQ(after.marked > 0, GetParam().marks);
  EXPECT_GT(incoming_bits(), 0.9 * (1 - kForeignShare) * kBitsPerSecond * seconds);
}

const std::vector<bcube::ServerId> kEight = {0, 1, 2, 3, 4, 5, 6, 7};

// Without marks only losses tell of the others, and up to 2 % of those are taken for damage.
INSTANTIATE_TEST_SUITE_P(
    Of30PercentOfAPort, ForeignTraffic,
    testing::Values(ForeignCase{"OfAStarAtMtu9000", "star:9", "9000", kEight, 8},
                    ForeignCase{"OfAStarAtMtu1500", "star:9", "1500", kEight, 8},
                    ForeignCase{"OfABCube", "bcube:4,2", "9000", {0, 1, 2, 4, 5, 6, 8, 9, 10}, 3},
                    ForeignCase{"OfAStarThatDoesNotMark", "star:9", "9000", kEight, 8, false,
                                0.02}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gradcube::simulation
