// A port whose interface is not as it should be, at the start or later.
#include <algorithm>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/fabric/kernel/packet_port.h"
#include "tests/unit/dataplane/fabric/packet_port_fixture.h"

namespace gradcube::dataplane {
namespace {

class PacketInterfaceTest : public PacketPortTest {
 protected:
  // What a port says that cannot be made.
  std::string refusal(const std::string& interface, const PacketPortOptions& options = {}) {
    try {
      port(interface, options);
    } catch (const control::SetupError& error) {
      return error.what();
    }
    return "none";
  }

  // As many as the port accepts.
  std::size_t send_what_fits(PacketPort& from, const Frames& all) {
    std::size_t sent = 0;
    while (sent < all.size() && from.transmit_room(0) != 0) {
      EXPECT_TRUE(send(from, Frames{all[sent++]}));
    }
    return sent;
  }
};

// What a thread may do, without one capability until the end of the scope.
class WithoutCapability {
 public:
  explicit WithoutCapability(unsigned capability) {
    call(SYS_capget, before_);
    __user_cap_data_struct reduced[2] = {before_[0], before_[1]};
    reduced[capability / 32].effective &= ~(1U << capability % 32);
    call(SYS_capset, reduced);
  }
  ~WithoutCapability() { call(SYS_capset, before_); }
  WithoutCapability(const WithoutCapability&) = delete;
  WithoutCapability& operator=(const WithoutCapability&) = delete;

 private:
  static void call(long number, __user_cap_data_struct* data) {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    EXPECT_EQ(syscall(number, &header, data), 0);
  }
  __user_cap_data_struct before_[2] = {};
};

TEST_F(PacketInterfaceTest, APortHasTheAddressAndTheMtuOfItsInterface) {
  ASSERT_TRUE(run("ip link set dev a address 02:47:00:00:01:02 mtu 4321"));
  auto a = port("a");
  EXPECT_EQ(a->mac(), (std::array<std::uint8_t, 6>{2, 0x47, 0, 0, 1, 2}));
  EXPECT_EQ(a->mtu(), 4321u);
  a.reset();
  EXPECT_EQ(port("a", {.mtu = 1500})->mtu(), 1500u);
}

TEST_F(PacketInterfaceTest, ARefusalNamesTheInterfaceAndWhatToDo) {
  EXPECT_EQ(refusal("c"),
            "there is no network interface 'c' here: `ip link` lists those that there are");
  EXPECT_EQ(refusal("a-name-that-is-too-long"),
            "there is no network interface 'a-name-that-is-too-long' here: `ip link` lists those "
            "that there are");
  EXPECT_EQ(refusal(""),
            "there is no network interface '' here: `ip link` lists those that there are");
  EXPECT_EQ(refusal("lo"), "network interface lo is no Ethernet interface: choose another");
  ASSERT_TRUE(run("ip link set dev b mtu 1500"));
  EXPECT_EQ(refusal("b", {.mtu = 9000}),
            "network interface b carries IP packets of at most 1500 bytes (its MTU), and the "
            "cluster's MTU is 9000: `ip link set dev b mtu 9000`, or an MTU of 1500 for the "
            "cluster");
  ASSERT_TRUE(run("ip link set dev a down"));
  EXPECT_EQ(refusal("a"), "network interface a is down: `ip link set dev a up`");
}

TEST_F(PacketInterfaceTest, ARefusalForWantOfPermissionNamesTheCapability) {
  std::string said;
  {
    const WithoutCapability none(CAP_NET_RAW);
    said = refusal("a");
  }
  EXPECT_EQ(said,
            "this process may not open network interface a: it needs CAP_NET_RAW (run it as root, "
            "or `setcap cap_net_raw+ep` its program)");
  EXPECT_EQ(refusal("a"), "none");
}

TEST_F(PacketInterfaceTest, FramesWaitWhileTheInterfaceIsDown) {
  const auto from = port("a", {.transmit_depth = 8});
  const auto to = port("b");
  const Frames sent = frames(100, 3000);
  ASSERT_TRUE(send(*from, Frames{sent[0]}));
  EXPECT_EQ(awaited(*to, 1), Frames{sent[0]});
  EXPECT_EQ(from->next_event(0), kNever);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(run("ip link set dev a down"));
    const std::uint64_t failures = from->drop_counts(0).tx_failed;
    const std::size_t accepted = send_what_fits(*from, sent);
    EXPECT_LT(accepted, sent.size());
    EXPECT_EQ(from->drop_counts(0).tx_failed, failures + accepted);
    EXPECT_EQ(from->next_event(0), clock_.now() + PacketPort::kRetry);
    // It tries again at its time and not before.
    EXPECT_TRUE(received(*from).empty());
    EXPECT_EQ(from->drop_counts(0).tx_failed, failures + accepted);
    turn(*from);
    EXPECT_EQ(from->drop_counts(0).tx_failed, failures + accepted + 1);
    // More and more seldom, so that a poller with nothing else to do sleeps.
    for (int tries = 0; tries < 12; ++tries) {
      clock_.advance(from->next_event(0) - clock_.now());
      EXPECT_TRUE(received(*from).empty());
    }
    EXPECT_EQ(from->next_event(0), clock_.now() + PacketPort::kLongestRetry);

    connect();
    clock_.advance(PacketPort::kLongestRetry);
    EXPECT_EQ(awaited(*to, accepted, from.get()), Frames(sent.begin(), sent.begin() + accepted));
    EXPECT_EQ(from->next_event(0), kNever);
  }
  ASSERT_TRUE(send(*from, sent));
  EXPECT_EQ(awaited(*to, sent.size(), from.get()), sent);
}

TEST_F(PacketInterfaceTest, APortWhoseInterfaceIsDeletedStandsStill) {
  const auto from = port("a", {.transmit_depth = 8});
  const auto to = port_of_queues("b", 2);
  ASSERT_TRUE(send(*from, Frames{frame(1000, 0)}));
  EXPECT_EQ(awaited(*to, 1).size(), 1u);
  ASSERT_TRUE(run("ip link del dev a"));
  EXPECT_LT(send_what_fits(*from, frames(100, 1000)), 100u);
  for (int i = 0; i < 10; ++i) {
    turn(*from);
    EXPECT_TRUE(received(*to).empty());
  }
  EXPECT_GT(from->drop_counts(0).tx_failed, 10u);
  EXPECT_EQ(to->drop_counts(1).tx_failed, 0u);
}

TEST_F(PacketInterfaceTest, APortGoesOnWithTheInterfaceThatGetsTheNameOfADeletedOne) {
  using testing::HasSubstr;
  const auto from = port("a");
  const auto to = port_of_queues("b", 2);
  const auto look = [&] {
    from->look();
    to->look();
  };
  for (int i = 0; i < 2; ++i) {
    look();
    EXPECT_EQ(from->problem() + to->problem(), "");
    ASSERT_TRUE(run("ip link del dev a"));
    look();
    EXPECT_THAT(from->problem(), HasSubstr("was deleted, and there is no network interface 'a'"));
    EXPECT_THAT(to->problem(), HasSubstr("was deleted, and there is no network interface 'b'"));
    make_veth();
    look();
    EXPECT_THAT(to->problem(), HasSubstr("network interface b is down"));
    connect();
    look();
    EXPECT_EQ(from->problem() + to->problem(), "");
    for (std::uint16_t thread = 0; thread < 4; ++thread) {
      const std::uint16_t queue = thread % 2;
      ASSERT_TRUE(send(*from, Frames{frame(1000, thread, thread)}));
      EXPECT_EQ(awaited(*to, 1, from.get(), queue), Frames{frame(1000, thread, thread)});
      ASSERT_TRUE(send(*to, Frames{frame(1000, thread, thread, true)}, queue));
      EXPECT_EQ(awaited(*from, 1, to.get()), Frames{frame(1000, thread, thread, true)});
    }
  }
}

TEST_F(PacketInterfaceTest, FramesThatNoLongerFitAreDroppedAndTheOthersLeave) {
  const auto from = port("a");
  const auto to = port("b");
  ASSERT_TRUE(run("ip link set dev a mtu 1500"));
  for (const std::string pattern :
       {"L", "LL", "Ls", "sL", "LsLsLs", "LLLsss", "sssLLL", "sLLLLs"}) {
    const std::uint64_t refused = from->drop_counts(0).tx_refused;
    Frames fit;
    std::vector<rte_mbuf*> packets;
    for (std::uint32_t i = 0; i < pattern.size(); ++i) {
      const std::string whole = frame(pattern[i] == 's' ? 1514 : 1515 + 100 * i, i);
      if (pattern[i] == 's') fit.push_back(whole);
      packets.push_back(in_one_segment(whole));
    }
    ASSERT_TRUE(send(*from, packets));
    EXPECT_EQ(from->drop_counts(0).tx_refused - refused, pattern.size() - fit.size()) << pattern;
    // The order may change.
    Frames arrived = awaited(*to, fit.size());
    std::sort(arrived.begin(), arrived.end());
    std::sort(fit.begin(), fit.end());
    EXPECT_EQ(arrived, fit) << pattern;
    EXPECT_EQ(from->next_event(0), kNever);
  }
  ASSERT_TRUE(run("ip link set dev a mtu 9000"));
  const Frames sent = frames(600, 9014);
  for (const std::string& whole : sent) {
    ASSERT_TRUE(send(*from, Frames{whole}));
    ASSERT_EQ(awaited(*to, 1), Frames{whole}) << "the ring is out of step";
  }
}

TEST_F(PacketInterfaceTest, FramesWaitWhileTheKernelsQueueIsFull) {
  const auto from = port("a");
  const auto to = port("b");
  // A queue that drops what is too much, and one that is longer than what a socket may have in it.
  for (const std::string limit : {"40k", "4m"}) {
    if (!run("tc qdisc replace dev a root tbf rate 200mbit burst 20k limit " + limit)) {
      GTEST_SKIP() << "this kernel has no token bucket filter (sch_tbf)";
    }
    const std::uint64_t postponed = from->drop_counts(0).tx_postponed;
    const Frames sent = frames(100, 9014);
    std::vector<rte_mbuf*> packets;
    for (const std::string& whole : sent) packets.push_back(in_one_segment(whole));
    ASSERT_EQ(from->transmit(0, packets.data(), 100), 100u);
    EXPECT_EQ(from->drop_counts(0).tx_postponed, postponed + 1) << "limit " << limit;
    EXPECT_EQ(from->next_event(0), clock_.now() + PacketPort::kRetry);
    EXPECT_EQ(awaited(*to, sent.size(), from.get()), sent) << "limit " << limit;
    EXPECT_EQ(from->drop_counts(0).tx_failed, 0u);
  }
}

}  // namespace
}  // namespace gradcube::dataplane
