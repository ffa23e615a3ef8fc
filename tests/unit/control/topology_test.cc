#include "control/plan/topology.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

std::string refusal(const std::string& spec) {
  return message_of<UsageError>([&] { parse_topology(spec, "--topology"); });
}

TEST(Topology, ReadsABCubeAsOneSwitchedDimensionPerPort) {
  const Topology topology = parse_topology("bcube:3,2", "--topology");
  EXPECT_EQ(topology.kind(), "bcube");
  EXPECT_EQ(topology.servers(), 9u);
  EXPECT_EQ(topology.levels(), 2u);
  EXPECT_EQ(topology.ports(), 2u);
  EXPECT_EQ(topology.level_ports(), (std::vector<unsigned>{0, 1}));
  EXPECT_EQ(topology.spec(), "bcube:3,2");
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_EQ(topology.dimensions()[i], (Dimension{3, i, 0, Link::switched}));
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
  EXPECT_EQ(topology.dimensions()[1], (Dimension{4, 2, 0, Link::adjacent}));
  EXPECT_EQ(topology.spec(), "torus:4,2");
}

TEST(Topology, RefusesWhatIsNoneInOneMessage) {
  EXPECT_EQ(refusal("bcube:0,2"),
            "--topology \"bcube:0,2\": n is 0, but it is 2..256; expected bcube:n,k with radix "
            "n in 2..256 and k levels in 1..7, for example bcube:3,2");
  EXPECT_EQ(refusal("bcube:3"),
            "--topology \"bcube:3\": bcube takes two numbers (n and k), not 1; expected "
            "bcube:n,k with radix n in 2..256 and k levels in 1..7, for example bcube:3,2");
  EXPECT_EQ(refusal("ring:4"),
            "--topology \"ring:4\": there is no topology \"ring\"; expected bcube:n,k or star:N, "
            "for example bcube:3,2");
  for (const char* spec :
       {"",           ":",           "bcube",      "bcube:",     "bcube:3,",
        "bcube:,2",   "bcube:3,2,1", "bcube:3,0",  "bcube:3,8",  "bcube:257,1",
        "bcube:16,5", "bcube:3;2",   "bcube:3,2 ", "bcube: 3,2", "bcube:-3,2",
        "bcube:3,2x", "star:1",      "star:0",     "star:3,2",   "star:99999999999",
        "torus:4",    "torus:1,2",   "BCUBE:3,2",  "bcubes:3,2"}) {
    const std::string message = refusal(spec);
    EXPECT_EQ(message.find(std::string("--topology \"") + spec + "\""), 0u) << message;
    EXPECT_NE(message.find("for example"), std::string::npos) << message;
  }
}

TEST(Topology, OffersOnlyTopologiesThatAPlanExistsFor) {
  for (const char* spec : {"x", "torus:4", "torus:1,2", "ring:4"}) {
    EXPECT_EQ(refusal(spec).find("torus:n,h"), std::string::npos) << refusal(spec);
  }
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

TEST(Topology, TakesARateForAllItsLinks) {
  const Topology topology = parse_topology("bcube:3,2", "t").with_rate(1000);
  for (const Dimension& dimension : topology.dimensions()) EXPECT_EQ(dimension.rate_bps, 1000u);
}

TEST(Topology, IsWrittenAsJson) {
  EXPECT_EQ(topology_json(parse_topology("bcube:3,2", "t")).dump(),
            R"({"kind":"bcube","n":3,"k":2,"servers":9})");
  EXPECT_EQ(topology_json(parse_topology("star:9", "t")).dump(),
            R"({"kind":"star","n":9,"k":1,"servers":9})");
  EXPECT_EQ(topology_json(parse_topology("torus:4,2", "t")).dump(),
            R"({"kind":"torus","n":4,"h":2,"servers":16})");
  EXPECT_EQ(topology_json(mixed_topology({2, 3})).dump(),
            R"({"kind":"bcube","radices":[3,2],"k":2,"servers":6})");
  EXPECT_EQ(address_json(parse_topology("bcube:3,2", "t").space(), 7).dump(), "[2,1]");
}

}  // namespace
}  // namespace gradcube::control
