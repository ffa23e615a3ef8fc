#include "control/settings/cluster_file.h"

#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "control/settings/cluster_settings.h"
#include "tests/unit/control/file_refusal.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

TEST(ClusterFile, FillsTheSettings) {
  const ClusterSettings settings = parse_cluster_file(R"(
[topology]
spec = "bcube:4,2"
[link]
fabric = "embedded"
rate = "200mbit"
mtu = 1500
delay = "1ms"
queue = "128KB"
[impair]
loss = 0.01
duplicate = 0
seed = 7
[engine]
packet-memory = "100M"
lcores = [0, 2]
server-lcores = 2
idle = "spin"
trainer-memory = "8G"
)",
                                                      "c.toml");
  EXPECT_EQ(settings.topology.spec(), "bcube:4,2");
  EXPECT_EQ(settings.rates, LinkRates(200'000'000));
  EXPECT_EQ(settings.mtu, 1500u);
  EXPECT_EQ(settings.delay_ns, 1'000'000);
  EXPECT_EQ(settings.queue_bytes, 128'000u);
  EXPECT_EQ(settings.loss, 0.01);
  EXPECT_EQ(settings.seed, 7u);
  EXPECT_EQ(settings.packet_memory_bytes, 100'000'000u);
  EXPECT_EQ(settings.lcores, (std::vector<unsigned>{0, 2}));
  EXPECT_EQ(settings.server_lcores, 2u);
  EXPECT_EQ(settings.idle, Idle::spin);
  EXPECT_EQ(settings.trainer_memory_bytes, 8'000'000'000u);
}

TEST(ClusterFile, MayLeaveEverythingOut) {
  EXPECT_EQ(parse_cluster_file("", "c.toml"), ClusterSettings());
  EXPECT_EQ(parse_cluster_file("[topology]\nspec = \"star:4\"\n", "c.toml").topology.spec(),
            "star:4");
}

TEST(ClusterFile, HasSectionsOfServersWithPortsOfTheirOwn) {
  const std::string star = "[topology]\nspec = \"star:9\"\n";
  const std::string rate = "[link]\nrate = \"200mbit\"\n";
  const std::string ports =
      "[servers.\"8\"]\nrate = \"2gbit\"\nports = 4\n[servers.3]\nrate = \"1gbit\"\n";
  const ClusterSettings settings = parse_cluster_file(ports + star + rate, "c.toml");
  EXPECT_EQ(rates_text(settings), "200mbit,server3=1gbit,server8=4x2gbit");
  EXPECT_EQ(settings.topology.space().ports(8), 4u);
  EXPECT_NE(file_refusal(star + ports).find("only servers' own ports have a rate"),
            std::string::npos);
  const std::pair<const char*, const char*> refused[] = {
      {"[servers.8]\nports = 4\n", "line 5: [servers.\"8\"] needs a rate"},
      {"[servers.8]\nrate = \"1gbit\"\nport = 4\n",
       "unknown key \"port\" in [servers.\"8\"]; accepted keys are rate, ports"},
      {"[servers]\n8 = \"1gbit\"\n", "expected [servers.\"8\"], and its keys below"},
      {"[servers.eight]\nrate = \"1gbit\"\n", "[servers] \"eight\""},
      {"[servers.8]\nrate = \"1gbit\"\nports = 17\n", "the ports of server 8"},
      {"[servers.9]\nrate = \"1gbit\"\n", "there is no server 9 in star:9"}};
  for (const auto& [text, words] : refused) {
    const std::string said = file_refusal(star + rate + text);
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
}

TEST(ClusterFile, RefusesKeysThatAreNestedTooDeeplyForItsReader) {
  std::string key = "a";
  while (key.size() < 200'000) key += ".a";
  for (const std::string& text : {key + " = 1\n", "[" + key + "]\n"}) {
    EXPECT_EQ(file_refusal("\n" + text),
              fmt::format("c.toml, line 2: the line has {} bytes; expected at most 4096",
                          text.size() - 1));
  }
}

TEST(ClusterFile, AsksForTheSpecOfATopology) {
  EXPECT_EQ(file_refusal("[topology]\nabsent = \"0,1\"\n"),
            "c.toml, line 1: [topology] needs spec, for example spec = \"bcube:3,2\"");
}

TEST(ClusterFile, ThatIsNoRegularFileIsRefusedAtOnce) {
  const std::string path = testing::TempDir() + "gradcube-fifo";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto why = [](const std::string& file) {
    return message_of<UsageError>([&] { read_cluster_file(file); });
  };
  EXPECT_NE(why(path).find("not a regular file"), std::string::npos);
  EXPECT_NE(why(testing::TempDir()).find("not a regular file"), std::string::npos);
  EXPECT_NE(why("/nowhere.toml").find("No such file"), std::string::npos);
  // The kernel opens it, and reads nothing at 0.
  EXPECT_NE(why("/proc/self/mem").find("Input/output error"), std::string::npos);
  unlink(path.c_str());
}

TEST(ClusterFile, NamesFileLineKeyAndWhatIsAccepted) {
  EXPECT_EQ(file_refusal("[link]\nrate = \"1gbit\"\nspeed = 3\n"),
            "c.toml, line 3: unknown key \"speed\" in [link]; accepted keys are fabric, rate, "
            "oversubscription, mtu, delay, queue, ecn-threshold, greeting, probing");
  EXPECT_EQ(file_refusal("[links]\n"),
            "c.toml, line 1: unknown section \"links\"; accepted sections are topology, link, "
            "impair, engine, users, security, servers");
  EXPECT_EQ(
      file_refusal("\n[link]\nrate = 200\n"),
      "c.toml, line 3: link.rate \"200\": the unit is missing; expected a number and its "
      "unit bit, kbit, mbit, gbit or tbit (bits per second), 1mbit to 10tbit, for example 200mbit");
}

TEST(ClusterFile, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"[link\n", "rate = \"1gbit\"\n", "link = 3\n", "[link]\nmtu = true\n",
        "[link]\nmtu = 9001\n", "[link]\nmtu = -1\n", "[impair]\nloss = 2\n",
        "[engine]\nlcores = [[0]]\n", "[engine]\nlcores = []\n", "[engine]\nlcores = [-1]\n",
        "[topology]\nspec = \"bcube\"\n", "[topology]\nspec = \"bcube:3,2\"\nn = 3\n",
        "[link]\nqueue = 1000\n", "[link]\nmtu = 1500\nmtu = 1500\n", "\xff\xfe"}) {
    EXPECT_EQ(file_refusal(text).find("c.toml"), 0u) << text << ": " << file_refusal(text);
  }
}

TEST(ClusterFile, IsReadFromDisk) {
  const std::string path = testing::TempDir() + "gradcube-cluster-file-test.toml";
  std::ofstream(path) << "[link]\nmtu = 1500\n";
  EXPECT_EQ(read_cluster_file(path).mtu, 1500u);
  std::remove(path.c_str());
  EXPECT_NE(message_of<UsageError>([&] { read_cluster_file(path); }).find(path), std::string::npos);
  EXPECT_THROW(read_cluster_file(testing::TempDir()), UsageError);
}

}  // namespace
}  // namespace gradcube::control
