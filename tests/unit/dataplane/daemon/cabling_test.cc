#include "dataplane/daemon/cabling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "control/plan/base/topology.h"

namespace gradcube::dataplane {
namespace {

constexpr protocol::SettingsDigest kOurs = {1, 9000, 100'000'000};

const bcube::AddressSpace& cube() {
  static const control::Topology kTopology = control::parse_topology("bcube:3,2", "test");
  return kTopology.space();
}

// What port 1 of [2,1] hears.
std::string text(const WrongGreeting& wrong) {
  return wrong_text(cube(), cube().parse("2,1"), 1, kOurs, wrong);
}
WrongGreeting from(GreetingFault fault, const char* server, std::uint8_t level) {
  return {.fault = fault,
          .level = level,
          .server = static_cast<std::uint16_t>(cube().parse(server)),
          .settings = kOurs};
}

TEST(WrongText, SaysWhoseLevelsAreCrossed) {
  constexpr const char* kText =
      "port 1 of server [2,1] hears port 0 of server {}: levels are crossed{}; compare the cables "
      "and the order of --interfaces";
  const auto crossed = [](const char* server) {
    return text(from(GreetingFault::other_level, server, 0));
  };
  // It is on this port's switch, and should be with its port 1.
  EXPECT_EQ(crossed("0,1"), fmt::format(kText, "[0,1]", " at [0,1]"));
  // This port is on the switch of its port 0.
  EXPECT_EQ(crossed("2,0"), fmt::format(kText, "[2,0]", " at [2,1]"));
  EXPECT_EQ(crossed("0,0"), fmt::format(kText, "[0,0]", ""));
}

TEST(WrongText, SaysThatAKeyIsAnotherBesideWhatElseIsWrong) {
  const WrongGreeting crossed = from(GreetingFault::other_level, "0,1", 0);
  const WrongGreeting other_key = from(GreetingFault::other_key, "2,0", 1);
  const auto all = [](const std::vector<WrongGreeting>& heard) {
    return wrong_text(cube(), cube().parse("2,1"), 1, kOurs, std::span(heard));
  };
  EXPECT_EQ(all({{}, {}}), "");
  EXPECT_EQ(all({crossed, {}}), text(crossed));
  EXPECT_EQ(all({{}, other_key}), text(other_key));
  EXPECT_EQ(all({crossed, other_key}), text(crossed) + "; besides, " + text(other_key));
}

TEST(WrongText, NamesAServerOfAnotherSwitch) {
  EXPECT_EQ(text(from(GreetingFault::no_neighbour, "2,0", 1)),
            "port 1 of server [2,1] hears port 1 of server [2,0], which is no neighbour at this "
            "level: one of them is on a wrong switch or has a wrong address");
}

TEST(WrongText, SaysThatAnAddressIsThereTwice) {
  EXPECT_EQ(text(from(GreetingFault::own_address, "2,1", 1)),
            "port 1 of server [2,1] hears itself: another server has the address [2,1] too, or a "
            "cable is looped");
  EXPECT_EQ(text(from(GreetingFault::own_address, "2,1", 0)),
            "port 1 of server [2,1] hears port 0 of the same server: both are on one switch, or "
            "another server has the address [2,1] too");
}

TEST(WrongText, SaysInWhatSettingsDifferIfItIsKnown) {
  WrongGreeting wrong = from(GreetingFault::other_settings, "0,1", 1);
  const std::string begin =
      "port 1 of server [2,1] hears port 1 of server [0,1], which has other settings or is of "
      "another cluster: ";
  EXPECT_EQ(text(wrong),
            begin +
                "its MTU and slowest rate are the same: compare topology, absent servers, "
                "aggregators, rates, interval of greetings (greeting, or idle) and version");
  wrong.settings.mtu = 1500;
  EXPECT_EQ(text(wrong), begin + "MTU 1500 (here 9000)");
  wrong.settings.bits_per_second = 0;
  EXPECT_EQ(text(wrong), begin + "MTU 1500 (here 9000), rate none (here 100mbit)");
  wrong.settings.mtu = 9000;
  EXPECT_EQ(text(wrong), begin + "rate none (here 100mbit)");
}

TEST(WrongText, OfAServerThatIsAbsentSaysSo) {
  const WrongGreeting wrong{
      .fault = GreetingFault::other_settings, .level = 0, .server = 8, .settings = kOurs};
  const bcube::AddressSpace part = cube().without(std::vector<bcube::ServerId>{8});
  EXPECT_NE(wrong_text(part, 7, 0, kOurs, wrong).find("of server [2,2] (absent)"),
            std::string::npos);
}

TEST(WrongText, OfAServerThatTheClusterDoesNotHaveSaysItsNumber) {
  for (const GreetingFault fault :
       {GreetingFault::other_settings, GreetingFault::other_level, GreetingFault::no_neighbour}) {
    const WrongGreeting wrong{.fault = fault, .level = 200, .server = 60'000, .settings = kOurs};
    EXPECT_EQ(text(wrong).find("port 1 of server [2,1] hears port 200 of server number 60000"), 0u);
  }
}

// Of port 1 of [2,1], to its neighbours [0,1] and [1,1].
TEST(LengthText, NamesTheServersTheDirectionAndWhatToDo) {
  const auto text = [](const std::vector<LossyLength>& links) {
    return length_text(cube(), cube().parse("2,1"), 1, 9000, links);
  };
  constexpr const char* kText =
      "port 1 of server [2,1]: {} small frames pass, frames of MTU 9000 do not: raise the MTU of "
      "the "
      "switches and interfaces on the way, or start the cluster with a smaller one (--mtu)";
  const bcube::ServerId first = cube().parse("0,1");
  const bcube::ServerId second = cube().parse("1,1");
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({{first, true, true}}), fmt::format(kText, "to and from [0,1]"));
  EXPECT_EQ(text({{first, true, false}, {second, true, false}}),
            fmt::format(kText, "from [0,1], [1,1]"));
  EXPECT_EQ(text({{first, true, false}, {second, false, true}}),
            fmt::format(kText, "from [0,1], and to [1,1]"));
}

using Minutes = std::chrono::minutes;
using Seconds = std::chrono::seconds;
constexpr WrongPortsLog::TimePoint kStart{Minutes(1000)};

TEST(WrongPortsLog, SaysTheSameOnceInAMinute) {
  WrongPortsLog log;
  const WrongPorts one = {{{7, 0}, {"one", {}}}};
  const WrongPorts both = {{{7, 0}, {"one", {}}}, {{7, 1}, {"other", {}}}};
  using Texts = std::vector<std::string>;
  EXPECT_EQ(log.news(one, kStart), Texts{"one"});
  EXPECT_EQ(log.news(one, kStart + Seconds(1)), Texts{});
  EXPECT_EQ(log.news({}, kStart + Seconds(2)), Texts{});
  EXPECT_EQ(log.news(both, kStart + Seconds(30)), Texts{"other"});
  EXPECT_EQ(log.news(both, kStart + Seconds(59)), Texts{});
  EXPECT_EQ(log.news(both, kStart + Seconds(60)), Texts{"one"});
}

TEST(WrongPortsLog, IsNotFilledByWhoeverSendsManyGreetings) {
  WrongPortsLog log;
  std::size_t said = 0;
  for (unsigned i = 0; i < 1000; ++i) {
    said +=
        log.news({{{7, 0}, {fmt::format("wrong {}", i), {}}}}, kStart + Seconds(i / 100)).size();
  }
  EXPECT_EQ(said, WrongPortsLog::kMostAtOnce);
  EXPECT_EQ(log.news({{{7, 0}, {"wrong again", {}}}}, kStart + Minutes(2)).size(), 1u);
}

}  // namespace
}  // namespace gradcube::dataplane
