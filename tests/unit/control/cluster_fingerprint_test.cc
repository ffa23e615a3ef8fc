#include "control/settings/cluster_fingerprint.h"

#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace gradcube::control {
namespace {

struct Daemon {
  ClusterSettings settings;
  DaemonChoices choices = {1, 8896, 512, 80'000'000, true};

  std::uint32_t fingerprint() const { return cluster_fingerprint(settings, choices); }
};

TEST(ClusterFingerprint, IsThatOfTheTextByFnv) {
  Daemon daemon;
  daemon.settings.rates = LinkRates(100'000'000);
  EXPECT_EQ(agreement_text(daemon.settings, daemon.choices),
            "greeting 80000000 messages 1 segment 8896 block 512 checksums yes topology bcube:3,2 "
            "rate 100mbit mtu 9000 server-lcores 1 authentication key");
  EXPECT_EQ(daemon.fingerprint(), 0xcd4c0290U);
}

TEST(ClusterFingerprint, DiffersWithAllThatDaemonsMustHaveInCommon) {
  const std::vector<std::function<void(Daemon&)>> changes = {
      [](Daemon&) {},
      [](Daemon& d) { d.settings.topology = parse_topology("star:9", "test"); },
      [](Daemon& d) { d.settings.topology = parse_topology("bcube:3,3", "test"); },
      [](Daemon& d) { d.settings.topology = d.settings.topology.without({8}); },
      [](Daemon& d) {
        d.settings.topology = d.settings.topology.without({7, 8});
      },
      [](Daemon& d) { d.settings.aggregators = {8}; },
      [](Daemon& d) { d.settings.mtu = 1500; },
      [](Daemon& d) { d.settings.server_lcores = 2; },
      [](Daemon& d) { d.settings.rates = LinkRates(1'000'000'000); },
      [](Daemon& d) {
        d.settings.rates = LinkRates(std::vector<std::uint64_t>{1, 2});
      },
      [](Daemon& d) { d.choices.message_format = 2; },
      [](Daemon& d) { d.choices.segment_bytes = 8832; },
      [](Daemon& d) { d.choices.block_bytes = 1024; },
      [](Daemon& d) { d.choices.greeting_ns = 0; },
      [](Daemon& d) { d.choices.checksums = false; },
  };
  std::set<std::uint32_t> all;
  for (const auto& change : changes) {
    Daemon daemon;
    change(daemon);
    all.insert(daemon.fingerprint());
  }
  EXPECT_EQ(all.size(), changes.size());
}

TEST(ClusterFingerprint, IsTheSameWhateverConcernsOneDaemonAlone) {
  Daemon other;
  other.settings.lcores = {3, 4};
  other.settings.idle = Idle::spin;
  other.settings.seed = 17;
  other.settings.queue_bytes = 512'000;
  other.settings.packet_memory_bytes = 8'000'000;
  other.settings.trainer_memory_bytes = 64'000'000;
  // Its effect is among the daemon's choices.
  other.settings.greeting_ns = other.choices.greeting_ns;
  EXPECT_EQ(other.fingerprint(), Daemon().fingerprint());
}

}  // namespace
}  // namespace gradcube::control
