#include "control/plan/base/topology.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

std::string spec_refusal(const std::string& spec) {
  return message_of<UsageError>([&] { parse_topology(spec, "--topology"); });
}

TEST(Topology, ReadsABCubeAsOneSwitchedDimensionPerPort) {
  const Topology topology = parse_topology("bcube:3,2", "--topology");
  EXPECT_EQ(topology.kind(), "bcube");
  EXPECT_EQ(topology.servers(), 9u);
  EXPECT_EQ(topology.levels(), 2u);
  EXPECT_EQ(topology.ports(), 2u);
  EXPECT_EQ(topology.spec(), "bcube:3,2");
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_EQ(topology.dimensions()[i], (Dimension{3, i, 0, Link::switched}));
  }
}

TEST(Topology, ReadsAListOfRadicesAsTheyStandInAnAddress) {
  const Topology topology = parse_topology("bcube:4x3x2", "--topology");
  EXPECT_EQ(topology.kind(), "bcube");
  EXPECT_EQ(topology.servers(), 24u);
  EXPECT_EQ(topology.ports(), 3u);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(topology.dimensions()[i], (Dimension{2 + i, i, 0, Link::switched}));
  }
  EXPECT_EQ(topology.spec(), "bcube:4x3x2");
  EXPECT_EQ(parse_server(topology, "3,2,1", "--server"), 23u);
  EXPECT_FALSE(topology.uniform());
}

TEST(Topology, ReadsAListOfEqualRadicesAsThePapersBCube) {
  const Topology topology = parse_topology("bcube:3x3", "--topology");
  EXPECT_EQ(topology, parse_topology("bcube:3,2", "--topology"));
  EXPECT_EQ(topology.spec(), "bcube:3,2");
}

TEST(Topology, RefusesListsOfRadicesInOneMessage) {
  const std::string form =
      "; expected bcube:n,k with radix n in 2..256 and k levels in 1..7, or the levels' radices, "
      "the highest level first; for example bcube:3,2 or bcube:4x3x2";
  const auto expect_refusal = [&](const std::string& spec, const std::string& what) {
    EXPECT_EQ(spec_refusal(spec), "--topology \"" + spec + "\": " + what + form);
  };
  expect_refusal("bcube:4x", "\"\" is not a whole number in range");
  expect_refusal("bcube:x", "\"\" is not a whole number in range");
  expect_refusal("bcube:4x3,2", "\"3,2\" is not a whole number in range");
  expect_refusal("bcube:4x-3", "\"-3\" is not a whole number in range");
  expect_refusal("bcube:1x3", "the radix of level 1 is 1, but it must be 2..256");
  expect_refusal("bcube:3x257", "the radix of level 0 is 257, but it must be 2..256");
  expect_refusal("bcube:2x2x2x2x2x2x2x2", "a bcube has 1..7 dimensions, not 8");
  expect_refusal("bcube:256x256x2",
                 "too many servers: at most 65536, because a server's number has 16 bits on the "
                 "wire");
  EXPECT_EQ(parse_topology("bcube:256x128x2", "t").servers(), 65536u);
  EXPECT_NE(spec_refusal("star:4x3").find("\"4x3\" is not a whole number"), std::string::npos);
  EXPECT_NE(spec_refusal("torus:4x3").find("\"4x3\" is not a whole number"), std::string::npos);
}

TEST(Topology, ReadsBackWhatItIsWrittenAs) {
  for (const Topology& topology : small_topologies(81)) {
    EXPECT_EQ(parse_topology(topology.spec(), "t"), topology) << topology.spec();
  }
}

TEST(Topology, ReadsAStarAsOneSwitch) {
  const Topology topology = parse_topology("star:9", "--topology");
  EXPECT_EQ(topology.levels(), 1u);
  EXPECT_EQ(topology.servers(), 9u);
  EXPECT_EQ(topology.ports(), 1u);
  EXPECT_EQ(topology.spec(), "star:9");
}

TEST(Topology, ReadsATorusAsRingsOnPortPairs) {
  const Topology topology = parse_topology("torus:4,2", "--topology");
  EXPECT_EQ(topology.servers(), 16u);
  EXPECT_EQ(topology.ports(), 4u);
  EXPECT_EQ(topology.space().ports(), 4u);
  EXPECT_EQ(topology.dimensions()[1], (Dimension{4, 2, 0, Link::adjacent}));
  EXPECT_EQ(topology.spec(), "torus:4,2");
}

TEST(Topology, RefusesWhatIsNoneInOneMessage) {
  EXPECT_EQ(
      spec_refusal("bcube:0,2"),
      "--topology \"bcube:0,2\": n is 0, but it is 2..256; expected bcube:n,k with radix "
      "n in 2..256 and k levels in 1..7, or the levels' radices, the highest level first; for "
      "example bcube:3,2 or bcube:4x3x2");
  EXPECT_EQ(spec_refusal("bcube:3"),
            "--topology \"bcube:3\": bcube takes two numbers (n and k), not 1; expected "
            "bcube:n,k with radix n in 2..256 and k levels in 1..7, or the levels' radices, the "
            "highest level first; for example bcube:3,2 or bcube:4x3x2");
  EXPECT_EQ(spec_refusal("ring:4"),
            "--topology \"ring:4\": there is no topology \"ring\"; expected bcube:n,k, bcube "
            "with a list of radices, star:N, torus:n,h or tree with a list of radices; for example "
            "bcube:3,2, bcube:4x3x2, torus:4,2 or tree:4x2");
  EXPECT_EQ(
      spec_refusal("torus:2,3"),
      "--topology \"torus:2,3\": n is 2, but it is 3..256; expected torus:n,h with rings of n "
      "in 3..256 servers and h dimensions in 1..7, for example torus:4,2");
  for (const char* spec :
       {"",           ":",           "bcube",      "bcube:",     "bcube:3,",
        "bcube:,2",   "bcube:3,2,1", "bcube:3,0",  "bcube:3,8",  "bcube:257,1",
        "bcube:16,5", "bcube:3;2",   "bcube:3,2 ", "bcube: 3,2", "bcube:-3,2",
        "bcube:3,2x", "star:1",      "star:0",     "star:3,2",   "star:99999999999",
        "torus:4",    "torus:1,2",   "BCUBE:3,2",  "bcubes:3,2"}) {
    const std::string message = spec_refusal(spec);
    EXPECT_EQ(message.find(std::string("--topology \"") + spec + "\""), 0u) << message;
    EXPECT_NE(message.find("for example"), std::string::npos) << message;
  }
}

TEST(Topology, IsAllOfSwitchesOrAllOfCables) {
  const Dimension ring{3, 0, 0, Link::adjacent};
  const Dimension star{3, 2, 0, Link::switched};
  EXPECT_TRUE(Topology("torus", {ring}).space().cabled());
  EXPECT_FALSE(Topology("star", {star}).space().cabled());
  EXPECT_THROW(Topology("x", {ring, star}), std::invalid_argument);
}

TEST(Topology, ReachesItsBounds) {
  EXPECT_EQ(parse_topology("bcube:16,4", "t").servers(), 65536u);
  EXPECT_EQ(parse_topology("bcube:256,2", "t").servers(), 65536u);
  EXPECT_EQ(parse_topology("bcube:4,7", "t").servers(), 16384u);
}

TEST(Topology, ReadsAServersAddress) {
  const Topology topology = parse_topology("bcube:3,2", "t");
  EXPECT_EQ(parse_server(topology, "2,1", "--server"), 7u);
  EXPECT_EQ(message_of<UsageError>([&] { parse_server(topology, "3,1", "--server"); }),
            "--server \"3,1\" is not a server's address: its digit at level 1 must be 0..2, for "
            "example 2,2 (topology bcube:3,2)");
}

TEST(Topology, TakesARateForEachLevel) {
  const Topology topology = parse_topology("bcube:3,2", "t").with_rates({1000, 2000});
  EXPECT_EQ(topology.dimensions()[0].rate_bps, 1000u);
  EXPECT_EQ(topology.dimensions()[1].rate_bps, 2000u);
  EXPECT_EQ(topology.spec(), "bcube:3,2");
}

TEST(Topology, IsWrittenAsJson) {
  EXPECT_EQ(topology_json(parse_topology("bcube:3,2", "t")).dump(),
            R"({"spec":"bcube:3,2","kind":"bcube","n":3,"k":2,"servers":9})");
  EXPECT_EQ(topology_json(parse_topology("star:9", "t")).dump(),
            R"({"spec":"star:9","kind":"star","n":9,"k":1,"servers":9})");
  EXPECT_EQ(topology_json(parse_topology("torus:4,2", "t")).dump(),
            R"({"spec":"torus:4,2","kind":"torus","n":4,"h":2,"servers":16})");
  EXPECT_EQ(topology_json(parse_topology("bcube:3x2", "test")).dump(),
            R"({"spec":"bcube:3x2","kind":"bcube","radices":[3,2],"k":2,"servers":6})");
  EXPECT_EQ(address_json(parse_topology("bcube:3,2", "t").space(), 7).dump(), "[2,1]");
}

}  // namespace
}  // namespace gradcube::control
