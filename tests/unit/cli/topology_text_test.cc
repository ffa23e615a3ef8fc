#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/text/json_fields.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

TEST(TopologyText, IsWhatTheTopologyFlagTakes) {
  EXPECT_EQ(topology_text({{"kind", "bcube"}, {"n", 3}, {"k", 2}, {"servers", 9}}), "bcube:3,2");
  EXPECT_EQ(topology_text({{"kind", "star"}, {"n", 9}, {"k", 1}, {"servers", 9}}), "star:9");
  EXPECT_EQ(topology_text({{"kind", "torus"}, {"n", 4}, {"h", 2}, {"servers", 16}}), "torus:4,2");
  EXPECT_EQ(topology_text({{"kind", "bcube"}, {"radices", {4, 3, 2}}, {"k", 3}, {"servers", 24}}),
            "bcube:4x3x2");
  const json part = {{"kind", "star"}, {"n", 4}, {"k", 1}, {"servers", 2}, {"absent", {{1}, {3}}}};
  EXPECT_EQ(topology_text(part), "star:4") << "absent servers have addresses";
  EXPECT_EQ(absent_text(part), "[1] [3]");
  EXPECT_EQ(servers_count_text(part), "2 servers, 2 absent");
  EXPECT_EQ(topology_text(json::object()), "");
  EXPECT_EQ(topology_text(json(5)), "");
}

}  // namespace
}  // namespace gradcube::cli
