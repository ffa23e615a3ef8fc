#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/text/json_fields.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

TEST(TopologyText, NamesWhoIsAbsent) {
  const json part = {{"spec", "star:4"}, {"servers", 2}, {"absent", {{1}, {3}}}};
  EXPECT_EQ(absent_text(part), "[1] [3]");
  EXPECT_EQ(servers_count_text(part), "2 servers, 2 absent");
}

}  // namespace
}  // namespace gradcube::cli
