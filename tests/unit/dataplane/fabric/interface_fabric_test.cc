// The ports of servers on network interfaces: two fabrics on the ends of a veth, and the pollers
// that sleep until something comes.

#include "dataplane/fabric/kernel/interface_fabric.h"

#include <cstddef>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

#include "bcube_forwarding/neighbours.h"
#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "tests/unit/dataplane/fabric/packet_port_fixture.h"
#include "tests/unit/dataplane/fabric/receiver.h"

namespace gradcube::dataplane {
namespace {

class InterfaceFabricTest : public PacketPortTest {
 protected:
  std::unique_ptr<ServerFabric> fabric(bcube::ServerId server, const std::string& interface,
                                       std::uint64_t rate = 0) {
    control::ClusterSettings settings;
    settings.topology = control::parse_topology("star:9", "test");
    if (rate != 0) settings.rates = control::LinkRates(rate);
    const PortsRequest request{
        .settings = settings, .server = server, .names = {interface}, .received = {&buffers()}};
    return kInterfaceDriver.make(request, clock_);
  }
  static PacketPort& port_of(ServerFabric& fabric, bcube::ServerId server) {
    return dynamic_cast<PacketPort&>(*fabric.ports(server).front());
  }
  // From one server's port of level 0 to another's.
  static std::string between(bcube::ServerId from, bcube::ServerId to, std::string whole) {
    const auto source = bcube::embedded_link_address(0, from).mac;
    const auto destination = bcube::embedded_link_address(0, to).mac;
    std::copy(destination.begin(), destination.end(), whole.begin());
    std::copy(source.begin(), source.end(), whole.begin() + 6);
    return whole;
  }
};

TEST_F(InterfaceFabricTest, GivesAServerThePortsThatItsNumberIsKnownBy) {
  const auto one = fabric(7, "a");
  const auto other = fabric(8, "b");
  EXPECT_EQ(port_of(*one, 7).mac(), bcube::embedded_link_address(0, 7).mac);
  ASSERT_EQ(one->ports(7).size(), 1u);
  EXPECT_THROW(one->ports(8), std::invalid_argument);
  const std::string whole = between(7, 8, frame(500, 3));
  rte_mbuf* packet = in_one_segment(whole);
  ASSERT_EQ(one->ports(7)[0]->transmit(0, &packet, 1), 1);
  EXPECT_EQ(awaited(port_of(*other, 8), 1), Frames{whole});
}

TEST_F(InterfaceFabricTest, HasItsInterfacesToItself) {
  auto one = fabric(7, "a");
  const auto other = fabric(8, "b");
  try {
    fabric(8, "a");
    ADD_FAILURE() << "two have one interface";
  } catch (const control::SetupError& error) {
    EXPECT_EQ(std::string(error.what()),
              "network interface a is already a port of another daemon (pid " +
                  std::to_string(getpid()) + "): end that one, or name other interfaces");
  }
  one.reset();
  fabric(8, "a");
}

// The name that tells that somebody has interface "a".
class NameOfInterface {
 public:
  NameOfInterface() {
    const std::string name = "gradcube-interface/a";
    name.copy(address_.sun_path + 1, name.size());
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  bool take() { return bind(socket_.get(), address(), size_) == 0; }
  // From then on others learn whose process this is: of this user.
  bool listen_as(uid_t user) {
    const bool is_user = seteuid(user) == 0;
    const bool listens = listen(socket_.get(), 1) == 0;
    return seteuid(0) == 0 && is_user && listens;
  }
  bool ask() { return connect(socket_.get(), address(), size_) == 0; }

 private:
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  control::Descriptor socket_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  sockaddr_un address_{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size_ = 0;
};

// Any user may take it.
TEST_F(InterfaceFabricTest, IsNotKeptFromItsInterfacesByWhatIsNoDaemon) {
  NameOfInterface stranger;
  ASSERT_TRUE(stranger.take());
  fabric(7, "a");
  ASSERT_TRUE(stranger.listen_as(65534));
  fabric(7, "a");
}

TEST_F(InterfaceFabricTest, LeavesInterfacesToAnotherUsersDaemon) {
  setfsuid(65534);  // whose packet socket it is
  const RawSocket of_another("a");
  setfsuid(0);
  NameOfInterface other;
  ASSERT_TRUE(other.take() && other.listen_as(65534));
  EXPECT_THROW(fabric(7, "a"), control::SetupError);
}

TEST_F(InterfaceFabricTest, HasItsInterfacesToItselfHoweverManyHaveAsked) {
  const auto one = fabric(7, "a");
  bool has_asked = true;
  unsigned times = 0;
  for (; has_asked && times < 100'000; ++times) has_asked = NameOfInterface().ask();
  ASSERT_FALSE(has_asked) << "the queue has no end";
  port_of(*one, 7).look();
  for (; times > 1; --times) EXPECT_TRUE(NameOfInterface().ask());
  port_of(*one, 7).look();
  EXPECT_THROW(fabric(8, "a"), control::SetupError);
}

TEST_F(InterfaceFabricTest, WakesAPollerThatSleeps) {
  TscClock clock;
  Poller poller(clock, control::Idle::adaptive, Poller::kCallPatience, 3'600'000'000'000);
  const auto to = fabric(8, "b");
  to->connect([&](std::uint16_t) -> Poller& { return poller; });
  Receiver receiver(port_of(*to, 8));
  poller.add(receiver, Poller::TimeBase::clock);
  poller.announce_run();
  std::thread thread([&] { poller.run(); });
  const RawSocket from("a");
  for (unsigned sent = 1; sent <= 3; ++sent) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    from.send(between(7, 8, frame(500, sent)));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (receiver.received < sent && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(receiver.received, sent) << "the poller sleeps on";
  }
  poller.stop();
  poller.await_end();
  thread.join();
  poller.remove(receiver);
}

TEST_F(InterfaceFabricTest, SaysWhenAPacedPortHasRoomAgain) {
  Poller poller(clock_, control::Idle::adaptive);
  const auto from = fabric(7, "a", 100'000'000);
  from->connect([&](std::uint16_t) -> Poller& { return poller; });
  EXPECT_EQ(poller.next_event(), kNever);
  Port& port = *from->ports(7)[0];
  while (port.transmit_room(0) != 0) {
    rte_mbuf* packet = in_one_segment(between(7, 8, frame(kMtu, 1)));
    ASSERT_EQ(port.transmit(0, &packet, 1), 1);
  }
  const Nanoseconds next = poller.next_event();
  EXPECT_GT(next, clock_.now());
  EXPECT_LT(next, clock_.now() + 10'000'000);
  from->discard_packets();
  EXPECT_EQ(poller.next_event(), kNever) << "it is watched no more";
}

}  // namespace
}  // namespace gradcube::dataplane
