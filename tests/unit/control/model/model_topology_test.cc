#include "control/model/model_topology.h"

#include <gtest/gtest.h>
#include <string>

#include "control/base/errors.h"
#include "control/model/grid.h"
#include "tests/unit/control/message.h"

namespace gradcube::control::model {
namespace {

std::string refusal(const std::string& spec) {
  return message_of<UsageError>([&] { parse_model_topology(spec, "--topology"); });
}

TEST(ModelTopology, IsReadAndWrittenTheSameWay) {
  for (const char* spec :
       {"bcube:4,2", "bcube:9,1", "bcube:4x3x2", "torus:4,3", "star:9", "fattree:1024"}) {
    EXPECT_EQ(parse_model_topology(spec, "test").spec(), spec);
  }
}

TEST(ModelTopology, ReadsTheHighestLevelFirst) {
  const ModelTopology topology = parse_model_topology("bcube:4x3x2", "test");
  EXPECT_EQ(topology.radices, (std::vector<std::uint64_t>{2, 3, 4}));
  EXPECT_FALSE(topology.uniform());
  EXPECT_EQ(parse_model_topology("bcube:3x3", "test").spec(), "bcube:3,2");
}

TEST(ModelTopology, CountsItsServers) {
  EXPECT_EQ(parse_model_topology("bcube:16,4", "test").servers(), 65536u);
  EXPECT_EQ(parse_model_topology("bcube:4x3x2", "test").servers(), 24u);
  EXPECT_EQ(parse_model_topology("torus:4,3", "test").servers(), 64u);
  EXPECT_EQ(parse_model_topology("star:9", "test").servers(), 9u);
  EXPECT_EQ(parse_model_topology("fattree:1024", "test").servers(), 1024u);
}

TEST(ModelTopology, SaysWhatIsWrongWhereAndWhatIsAccepted) {
  EXPECT_EQ(refusal("ring:4"),
            "--topology \"ring:4\": there is no topology \"ring\"; expected bcube:n,k, bcube with "
            "a list of radices, torus:n,h, star:N or fattree:N; for example bcube:3,2 or "
            "bcube:4x3x2");
  EXPECT_EQ(refusal("bcube:4x1"),
            "--topology \"bcube:4x1\": a radix \"1\": expected a whole number in 2..1000000000");
  EXPECT_EQ(refusal("bcube:1,2"),
            "--topology \"bcube:1,2\": n \"1\": expected a whole number in 2..1000000000");
  EXPECT_EQ(refusal("torus:4,0"),
            "--topology \"torus:4,0\": h \"0\": expected a whole number in 1..16");
  EXPECT_EQ(refusal("fattree:1"),
            "--topology \"fattree:1\": N \"1\": expected a whole number in 2..1000000000");
}

TEST(ModelTopology, RefusesWhatIsNoTopology) {
  for (const char* spec : {"",
                           ":",
                           "bcube",
                           "bcube:",
                           "bcube:4",
                           "bcube:4,",
                           "bcube:4,2,2",
                           "bcube4,2",
                           "bcube:x,2",
                           "bcube:4,17",
                           "star:4,2",
                           "star",
                           "star:-1",
                           "torus:4",
                           "fattree:4,2",
                           "bcube:2,2 ",
                           "bcube:40000,2",
                           "bcube:4x",
                           "bcube:x",
                           "bcube:4x3,2",
                           "torus:4x3",
                           "star:4x3",
                           "bcube:100000x100000"}) {
    EXPECT_NE(refusal(spec), "") << spec;
  }
}

TEST(Grid, HasUpToTheMostServers) {
  EXPECT_EQ(grid_servers(1000, 3), kMostServers);
  EXPECT_THROW(grid_servers(1001, 3), std::invalid_argument);
  EXPECT_THROW(grid_servers(std::uint64_t{1} << 63, 2), std::invalid_argument) << "no overflow";
  EXPECT_EQ(checked_servers(2), 2u);
  EXPECT_THROW(checked_servers(1), std::invalid_argument);
  EXPECT_THROW(checked_servers(kMostServers + 1), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control::model
