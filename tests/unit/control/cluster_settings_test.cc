#include "control/settings/cluster_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "control/base/errors.h"
#include "control/settings/cluster_file.h"
#include "tests/unit/control/file_refusal.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

TEST(ClusterSettings, AreReadByTheNamesOfTheFlags) {
  ClusterSettings settings;
  std::string fifteen;
  std::string one_each;
  for (int i = 1; i <= 15; ++i) fifteen += fmt::format("10.0.0.{} ", i);
  for (int i = 1; i <= 15; ++i) one_each += fmt::format("eth{} ", i);
  const std::pair<const char*, const char*> flags[] = {{"topology", "tree:4x4"},
                                                       {"rate", "1gbit"},
                                                       {"mtu", "1500"},
                                                       {"delay", "50us"},
                                                       {"queue", "64K"},
                                                       {"ecn-threshold", "20K"},
                                                       {"loss", "0.01"},
                                                       {"duplicate", "0.02"},
                                                       {"reorder", "0.05"},
                                                       {"corrupt", "0.03"},
                                                       {"seed", "42"},
                                                       {"lcores", "0-2,5"},
                                                       {"packet-memory", "2G"},
                                                       {"idle", "spin"},
                                                       {"trainer-memory", "8G"},
                                                       {"greeting", "10ms"},
                                                       {"probing", "50ms"},
                                                       {"fabric", "udp"},
                                                       {"absent", "15"},
                                                       {"aggregators", "14"},
                                                       {"server-lcores", "2"},
                                                       {"hosts", fifteen.c_str()},
                                                       {"oversubscription", "4"},
                                                       {"interfaces", one_each.c_str()},
                                                       {"allow-users", "alice,1001"},
                                                       {"allow-groups", "ml"},
                                                       {"user-jobs", "3"},
                                                       {"user-sessions", "30"},
                                                       {"authentication", "none"},
                                                       {"key-file", "/etc/cube.key"}};
  for (const auto& [name, text] : flags) apply_setting(settings, name, text, "flag");
  EXPECT_EQ(std::size(flags), setting_names().size());
  EXPECT_EQ(settings.topology.spec(), "tree:4x4");
  EXPECT_EQ(settings.aggregators, Aggregators{14});
  EXPECT_EQ(settings.rates, LinkRates(1'000'000'000));
  EXPECT_EQ(settings.oversubscription, 4u);
  EXPECT_EQ(settings.mtu, 1500u);
  EXPECT_EQ(settings.delay_ns, 50'000);
  EXPECT_EQ(settings.queue_bytes, 64'000u);
  EXPECT_EQ(settings.ecn_threshold(), 20'000u);
  EXPECT_EQ(settings.loss, 0.01);
  EXPECT_EQ(settings.duplicate, 0.02);
  EXPECT_EQ(settings.reorder, 0.05);
  EXPECT_EQ(settings.corrupt, 0.03);
  EXPECT_EQ(settings.seed, 42u);
  EXPECT_EQ(settings.lcores, (std::vector<unsigned>{0, 1, 2, 5}));
  EXPECT_EQ(settings.server_lcores, 2u);
  EXPECT_EQ(settings.packet_memory_bytes, 2'000'000'000u);
  EXPECT_EQ(settings.greeting_ns, 10'000'000u);
  EXPECT_EQ(settings.probing_ns, 50'000'000u);
  EXPECT_EQ(settings.idle, Idle::spin);
  EXPECT_EQ(settings.trainer_memory_bytes, 8'000'000'000u);
  EXPECT_EQ(settings.fabric, FabricKind::udp);
  EXPECT_EQ(settings.hosts.size(), 15u);
  EXPECT_EQ(settings.authentication, Authentication::none);
  EXPECT_EQ(settings.key_file, "/etc/cube.key");
  EXPECT_EQ(settings.interfaces.size(), 15u);
  EXPECT_EQ(settings.allowed_users, (NameList{"alice", "1001"}));
  EXPECT_EQ(settings.allowed_groups, NameList{"ml"});
  EXPECT_EQ(settings.jobs_per_user(), 3u);
  EXPECT_EQ(settings.user_sessions, 30u);
  EXPECT_THROW(validate(settings), UsageError) << "links that are not emulated lose nothing";
  settings.fabric = FabricKind::embedded;
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  settings.hosts.clear();
  settings.interfaces.clear();
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
}

TEST(ClusterSettings, DefaultsAreValidAndSurviveJson) {
  const ClusterSettings settings;
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings_from_json(nlohmann::ordered_json::parse(to_json(settings).dump())), settings);
  EXPECT_EQ(settings.ecn_threshold(), settings.queue_bytes / 2);
}

TEST(ClusterSettings, RefuseAnUnknownNameAndBadLcores) {
  ClusterSettings settings;
  EXPECT_NE(message_of<UsageError>([&] { apply_setting(settings, "speed", "1", "--speed"); })
                .find("expected topology, absent, aggregators, hosts, interfaces, fabric, "
                      "rate"),
            std::string::npos);
  for (const char* text : {"", ",", "0,", "x", "0,0", "3-1", "0-3,2", "1024", "-1", "1-"}) {
    EXPECT_THROW(apply_setting(settings, "lcores", text, "--lcores"), UsageError) << text;
  }
  EXPECT_THROW(apply_setting(settings, "idle", "lazy", "--idle"), UsageError);
  EXPECT_EQ(settings, ClusterSettings());
}

TEST(ClusterSettings, GiveAUserAllJobsWhileHeIsAloneAndHalfOfThemBesideOthers) {
  ClusterSettings settings;
  EXPECT_FALSE(settings.has_tenants());
  EXPECT_EQ(settings.jobs_per_user(), kMostUserJobs);
  apply_setting(settings, "allow-groups", "ml", "--allow-groups");
  EXPECT_TRUE(settings.has_tenants());
  EXPECT_EQ(settings.jobs_per_user(), kMostUserJobs / 2);
}

TEST(ClusterSettings, TakeUsersAsAListInAClusterFile) {
  const ClusterSettings settings = parse_cluster_file(
      "[users]\nallow-users = [\"alice\", 1001]\nallow-groups = \"ml\"\nuser-jobs = 2\n", "c.toml");
  EXPECT_EQ(settings.allowed_users, (NameList{"alice", "1001"}));
  EXPECT_EQ(settings.allowed_groups, NameList{"ml"});
  EXPECT_EQ(settings.user_jobs, 2u);
  for (const char* names : {"", ",", "alice,", "al ice", "a:b", "alice,bob,alice", "a\nb"}) {
    EXPECT_THROW(parse_names(names, "--allow-users"), UsageError) << names;
  }
  EXPECT_EQ(message_of<UsageError>([&] { parse_names("alice,", "--allow-users"); }),
            "--allow-users: \"\" is no name; expected names or numbers with commas between them, "
            "for example alice,1001");
}

TEST(ClusterSettings, RefuseAQueueThatDoesNotHoldTwoFrames) {
  ClusterSettings settings;
  settings.queue_bytes = 10'000;
  EXPECT_EQ(message_of<UsageError>([&] { validate(settings); }),
            "the queue of a switch port is 10K; at MTU 9000 expected 18036 bytes (two full "
            "frames) to 1G");
  settings.mtu = 1500;
  EXPECT_NO_THROW(validate(settings));
  settings.ecn_threshold_bytes = 10'001;
  EXPECT_THROW(validate(settings), UsageError);
}

TEST(ClusterSettings, KnowTheFabricsByName) {
  ClusterSettings settings;
  apply_setting(settings, "fabric", "veth", "--fabric");
  EXPECT_EQ(settings.fabric, FabricKind::veth);
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  apply_setting(settings, "fabric", "memif", "--fabric");
  EXPECT_EQ(settings.fabric, FabricKind::memif);
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  EXPECT_EQ(message_of<UsageError>([&] { apply_setting(settings, "fabric", "cat6", "--fabric"); }),
            "--fabric \"cat6\": expected embedded, memif, veth or udp");
}

TEST(ClusterSettings, TakeServersOutOfTheTopologyThatStandsThere) {
  ClusterSettings settings;
  apply_setting(settings, "topology", "bcube:4,2", "--topology");
  apply_setting(settings, "absent", "3,1 3,2", "--absent");
  EXPECT_EQ(settings.topology.servers(), 14u);
  EXPECT_EQ(settings.rated_topology().servers(), 14u);
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  apply_setting(settings, "absent", "3,3", "--absent");
  EXPECT_EQ(settings.topology.absent_text(), "3,3");
  apply_setting(settings, "topology", "bcube:4,2", "--topology");
  EXPECT_EQ(settings.topology.servers(), 16u);
  EXPECT_EQ(parse_cluster_file("[topology]\nabsent = [\"2,1\", \"2,2\"]\nspec = \"bcube:3,2\"\n",
                               "c.toml")
                .topology.absent_text(),
            "2,1 2,2");
  EXPECT_EQ(parse_cluster_file("[topology]\nabsent = \"3\"\nspec = \"star:4\"\n", "c.toml")
                .topology.servers(),
            3u);
  EXPECT_NE(file_refusal("[topology]\nspec = \"bcube:3,2\"\nabsent = [\"2,3\"]\n")
                .find("c.toml, line 3: topology.absent"),
            std::string::npos);
  EXPECT_NE(file_refusal("[topology]\nabsent = [\"2,2\"]\n").find("needs spec"), std::string::npos);
}

TEST(ClusterSettings, NameServersThatTakeNoTrainersOfTheTopologyThatStandsThere) {
  ClusterSettings settings;
  apply_setting(settings, "topology", "star:9", "--topology");
  apply_setting(settings, "aggregators", "8", "--aggregators");
  EXPECT_EQ(settings.aggregators, Aggregators{8});
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  apply_setting(settings, "absent", "8", "--absent");
  EXPECT_NE(message_of<UsageError>([&] { validate(settings); }).find("server [8] is absent"),
            std::string::npos);
  apply_setting(settings, "topology", "star:9", "--topology");
  EXPECT_TRUE(settings.aggregators.empty());
  const std::string_view file =
      "[topology]\naggregators = [\"2,1\", \"2,2\"]\nabsent = [\"2,0\"]\nspec = \"bcube:3,2\"\n";
  EXPECT_EQ(parse_cluster_file(file, "c.toml").aggregators, (Aggregators{7, 8}));
  EXPECT_EQ(parse_cluster_file("[topology]\naggregators = \"3\"\nspec = \"star:4\"\n", "c.toml")
                .aggregators,
            Aggregators{3});
  EXPECT_NE(file_refusal("[topology]\nspec = \"bcube:3,2\"\naggregators = [\"2,3\"]\n")
                .find("c.toml, line 3: topology.aggregators"),
            std::string::npos);
  EXPECT_NE(
      file_refusal("[topology]\nspec = \"bcube:3,2\"\nabsent = \"2,2\"\naggregators = \"2,2\"\n")
          .find("c.toml, line 4: topology.aggregators"),
      std::string::npos);
  EXPECT_NE(file_refusal("[topology]\nspec = \"star:4\"\nn = 4\naggregators = \"3\"\n")
                .find("unknown key \"n\""),
            std::string::npos);
}

TEST(ClusterSettings, RefuseForVethWhatItsSwitchesDoNot) {
  const std::pair<const char*, const char*> flags[] = {
      {"delay", "50us"},     {"ecn-threshold", "20K"}, {"loss", "0.01"},
      {"duplicate", "0.02"}, {"reorder", "0.05"},      {"corrupt", "0.03"}};
  for (const auto& [name, text] : flags) {
    ClusterSettings settings;
    apply_setting(settings, name, text, "flag");
    EXPECT_NO_THROW(validate(settings));
    settings.fabric = FabricKind::veth;
    EXPECT_TRUE(message_of<UsageError>([&] { validate(settings); }).starts_with(name)) << name;
  }
}

TEST(ClusterSettings, RefuseForUdpWhatTheNetworkDoesNotAndHostsForOthers) {
  ClusterSettings settings;
  settings.topology = parse_topology("star:2", "");
  settings.hosts = parse_hosts("10.0.0.1 10.0.0.2", "");
  EXPECT_EQ(message_of<UsageError>([&] { validate(settings); }),
            "hosts: they are for the udp fabric, and the fabric is embedded: expected --fabric "
            "udp, or in [link] of a cluster file fabric = \"udp\"");
  settings.fabric = FabricKind::udp;
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings_from_json(to_json(settings)), settings);
  settings.loss = 0.01;
  EXPECT_NE(message_of<UsageError>([&] { validate(settings); }).find("the network's between"),
            std::string::npos);
}

TEST(ClusterSettings, TakeInterfacesOfHostsThatAreNamedAndOfNoOtherFabric) {
  ClusterSettings settings;
  settings.topology = parse_topology("star:2", "");
  settings.interfaces = parse_interfaces("eth0 eth1", "");
  EXPECT_NE(message_of<UsageError>([&] { validate(settings); }).find("expected `hosts` as well"),
            std::string::npos);
  settings.hosts = parse_hosts("10.0.0.1 10.0.0.2", "");
  EXPECT_NO_THROW(validate(settings));
  settings.fabric = FabricKind::udp;
  EXPECT_THROW(validate(settings), UsageError);
}

TEST(ClusterSettings, BoundTheDaemonsOfTheUdpFabricWhereAllAreOnOneHost) {
  ClusterSettings settings;
  settings.fabric = FabricKind::udp;
  settings.topology = parse_topology("star:65", "");
  EXPECT_THROW(validate(settings), UsageError);
  std::string hosts;
  for (int i = 1; i <= 65; ++i) hosts += fmt::format("10.0.0.{} ", i);
  settings.hosts = parse_hosts(hosts, "");
  EXPECT_NO_THROW(validate(settings));
}

TEST(ClusterSettings, BoundTheDaemonsOfTheVethFabricAndWhatTheyShare) {
  ClusterSettings settings;
  settings.fabric = FabricKind::veth;
  settings.topology = parse_topology("bcube:8,2", "");
  EXPECT_NO_THROW(validate(settings));
  settings.packet_memory_bytes = 63'000'000;
  EXPECT_EQ(message_of<UsageError>([&] { validate(settings); }),
            "the packet memory is 63M, and the daemons of the veth fabric divide it; expected 1M "
            "for each of the 64");
  settings.packet_memory_bytes = 64'000'000;
  settings.trainer_memory_bytes = 64 << 20;
  EXPECT_NO_THROW(validate(settings));
  settings.topology = parse_topology("star:65", "");
  EXPECT_NE(message_of<UsageError>([&] { validate(settings); }).find("a daemon for each"),
            std::string::npos);
}

TEST(ClusterSettings, RefuseForMemifWhatNoProcessOfSwitchesHolds) {
  ClusterSettings settings;
  settings.fabric = FabricKind::memif;
  settings.loss = 0.01;
  settings.delay_ns = 1000;
  for (const char* topology : {"bcube:3,2", "bcube:8,2", "star:32", "torus:4,3", "torus:64,1"}) {
    settings.topology = parse_topology(topology, "");
    EXPECT_NO_THROW(validate(settings)) << topology;
  }
  const std::pair<const char*, const char*> refused[] = {{"star:33", "switches of at most 32"},
                                                         {"star:65", "at most 64"}};
  for (const auto& [topology, why] : refused) {
    settings.topology = parse_topology(topology, "");
    EXPECT_NE(message_of<UsageError>([&] { validate(settings); }).find(why), std::string::npos)
        << topology;
  }
}

TEST(ClusterSettings, LetServersOnVethsBeJoinedByCables) {
  ClusterSettings settings;
  settings.fabric = FabricKind::veth;
  settings.topology = parse_topology("torus:3,2", "");
  EXPECT_NO_THROW(validate(settings));
}

TEST(ClusterSettings, RefuseTooLittleMemoryForTrainers) {
  ClusterSettings settings;
  settings.trainer_memory_bytes = 1000;
  EXPECT_EQ(message_of<UsageError>([&] { validate(settings); }),
            "trainer-memory \"1000\": expected 1.048576M or more");
  settings.trainer_memory_bytes = 1 << 20;
  EXPECT_NO_THROW(validate(settings));
}

TEST(ClusterSettings, RefuseJsonThatIsNotTheirs) {
  const nlohmann::ordered_json good = to_json(ClusterSettings());
  for (const auto& [key, value] : good.items()) {
    nlohmann::ordered_json bad = good;
    bad.erase(key);
    EXPECT_THROW(settings_from_json(bad), UsageError) << key;
    bad = good;
    bad[key] = nlohmann::ordered_json::object({{"x", 1}});
    EXPECT_THROW(settings_from_json(bad), UsageError) << key;
    bad[key] = -1;
    EXPECT_THROW(settings_from_json(bad), UsageError) << key;
  }
  EXPECT_THROW(settings_from_json(nlohmann::ordered_json::array()), UsageError);
}

}  // namespace
}  // namespace gradcube::control
