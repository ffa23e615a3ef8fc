#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/settings/cluster_file.h"
#include "control/settings/host_list.h"

namespace gradcube::control {
namespace {

using Names = std::vector<std::string>;

TEST(InterfaceList, IsReadByRowsAndServers) {
  const Topology topology = parse_absent(parse_topology("bcube:2,2", ""), "0,1", "");
  const InterfaceList interfaces = parse_interfaces(" eth0,eth1  eth1,eth0\tenp3s0f1.7,wan@2 ", "");
  EXPECT_EQ(interfaces_text(interfaces), "eth0,eth1 eth1,eth0 enp3s0f1.7,wan@2");
  EXPECT_NO_THROW(validate_interfaces(topology, interfaces));
  EXPECT_EQ(interfaces_of(topology, interfaces, 0), (Names{"eth0", "eth1"}));
  EXPECT_EQ(interfaces_of(topology, interfaces, 2), (Names{"eth1", "eth0"}));
  EXPECT_EQ(interfaces_of(topology, interfaces, 3), (Names{"enp3s0f1.7", "wan@2"}));
}

TEST(InterfaceList, StandsInAClusterFileAsRows) {
  const std::string file =
      "[topology]\nspec = \"bcube:2,2\"\nhosts = [\"10.0.0.1\", \"10.0.0.2\", \"10.0.0.3\", "
      "\"10.0.0.4\"]\ninterfaces = [[\"a\", \"b\"], [\"b\", \"a\"], \"a,b\", [\"c\", \"d\"]]\n";
  EXPECT_EQ(interfaces_text(parse_cluster_file(file, "c.toml").interfaces), "a,b b,a a,b c,d");
}

TEST(InterfaceList, RefusesWhatIsNoName) {
  for (const char* const text :
       {"", "eth0,", ",eth0", "eth0 ../x", "-eth0", "sixteen-letters-", "a\x01"}) {
    EXPECT_THROW(parse_interfaces(text, "--interfaces"), UsageError) << text;
  }
}

TEST(InterfaceList, RefusesRowsThatDoNotFit) {
  const Topology topology = parse_topology("bcube:2,2", "");
  for (const char* const text :
       {"a,b a,b a,b", "a,b a,b a,b a", "a,b a,b a,b a,a", "a,b a,b a,b a,b a,b"}) {
    EXPECT_THROW(validate_interfaces(topology, parse_interfaces(text, "")), UsageError) << text;
  }
  EXPECT_NO_THROW(validate_interfaces(topology, {}));
}

}  // namespace
}  // namespace gradcube::control
