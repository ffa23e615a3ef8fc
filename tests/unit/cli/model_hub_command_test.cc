// `gradcube model hub`: what it prints, and what it refuses. The numbers are tested in
// tests/unit/control/model/phub_model_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/model_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ModelHub : public ModelCommandLine {};

TEST_F(ModelHub, HasARowForEachNetworkAndLayout) {
  EXPECT_EQ(rows({"hub"}).size(), 9u * 4);
  const json alexnet = rows({"hub", "--network", "alexnet", "--workers", "2..4"});
  ASSERT_EQ(alexnet.size(), 2u * 4);
  EXPECT_EQ(alexnet[4], json::parse(R"({"network":"alexnet","workers":4,"layout":"cc",
                                        "bits_per_second":582e9})"));
  EXPECT_EQ(alexnet[7]["layout"], "ncs");
}

TEST_F(ModelHub, TakesANetworkThatIsNoneOfThePapers) {
  const json own = rows({"hub", "--bytes", "125M", "--compute", "1s"});
  ASSERT_EQ(own.size(), 4u);
  EXPECT_EQ(own[0]["network"], "own");
  EXPECT_DOUBLE_EQ(own[0]["bits_per_second"].get<double>(), 14e9);
  EXPECT_THAT(output({"hub", "--bytes", "125M", "--compute", "1s"}),
              HasSubstr("own            8  cc       14 Gbit/s  colocated, centralized\n"));
}

TEST_F(ModelHub, SaysWhetherAHierarchyPays) {
  const std::vector<std::string> place = {"hub", "--racks",     "4",     "--bytes",
                                          "1G",  "--core-rate", "20gbit"};
  const json row = rows(place)[0];
  EXPECT_EQ(row["workers_per_rack"], 8);
  EXPECT_EQ(row["racks"], 4);
  EXPECT_DOUBLE_EQ(row["flat_seconds"].get<double>(), 2.4);
  EXPECT_DOUBLE_EQ(row["hierarchical_seconds"].get<double>(), 1.1);
  EXPECT_EQ(row["pays"], true);
  EXPECT_THAT(output(place), HasSubstr("# 1 GB; a hub has 100 Gbit/s, a rack's uplink 20 Gbit/s, a "
                                       "worker 10 Gbit/s\n"));
  EXPECT_THAT(output(place),
              HasSubstr("           8      4  2.4 s         1.1 s     0.458   yes\n"));
  EXPECT_EQ(rows({"hub", "--racks", "4", "--core-rate", "100gbit"})[0]["pays"], false);
}

TEST_F(ModelHub, SaysWhatIsWrongWithAnOption) {
  refuse({"hub", "--network", "alexnt"}, "did you mean alexnet?");
  refuse({"hub", "--bytes", "1M"}, "expected both");
  refuse({"hub", "--network", "vgg11", "--bytes", "1M", "--compute", "1s"}, "expected one of them");
  refuse({"hub", "--bytes", "0", "--compute", "1s"}, "expected more than 0");
  refuse({"hub", "--bytes", "1M", "--compute", "0"}, "expected more than 0");
  refuse({"hub", "--workers", "1"}, "--workers");
  refuse({"hub", "--racks", "1"}, "--racks");
  refuse({"hub", "--racks", "2", "--workers", "x"}, "--workers");
  refuse({"hub", "--racks", "2", "--bytes", "0"}, "expected 1 byte or more");
  refuse({"hub", "--racks", "2", "--hub-rate", "0"}, "--hub-rate");
  refuse({"hub", "--racks", "2", "--core-rate", "fast"}, "--core-rate");
  refuse({"hub", "--racks", "2", "--worker-rate", "10"}, "--worker-rate");
  refuse({"hub", "--worker-rate", "10gbit"}, "--racks");
  refuse({"hub", "--racks", "2", "--network", "vgg11"}, "--network");
}

}  // namespace
}  // namespace gradcube::cli
