#include "cli/fitted_costs.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/plan_cost.h"
#include "control/settings/link_rates.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::MessageCosts;
using control::model::AllReduceCost;

control::Topology topology_of(const char* spec) { return control::parse_topology(spec, "test"); }

// What measurements would give if messages cost just this.
MessageCosts found_again(const char* spec, const MessageCosts& costs) {
  const auto topology = topology_of(spec);
  std::vector<AllReduceCost> lines;
  auto parameters = control::cost_parameters(topology, costs);
  parameters.frame_bytes = 0;
  for (const auto& level : parameters.levels) {
    lines.push_back({2 * level.latency + 4 * parameters.overhead, 1e-9});
  }
  const double all = control::PlanCost(control::make_plan("bml", topology, "test"))
                         .time(control::CollectiveKind::all_reduce, 0, parameters)
                         .seconds();
  return message_costs(lines, topology, all);
}

TEST(MessageCosts, AreFoundFromWhatTheyMakeOfMeasurements) {
  for (const char* spec : {"star:5", "bcube:3,2", "bcube:2,2"}) {
    const unsigned levels = topology_of(spec).levels();
    const MessageCosts costs{3'100, std::vector<std::int64_t>(levels, 40'700)};
    EXPECT_EQ(found_again(spec, costs), costs) << spec;
  }
  const MessageCosts by_level{2'000, {20'000, 65'500, 7'000}};
  EXPECT_EQ(found_again("bcube:3x2x4", by_level), by_level);
}

TEST(MessageCosts, OfTwoServersAreAllLatency) {
  EXPECT_EQ(found_again("star:2", {3'000, {40'000}}), (MessageCosts{0, {46'000}}));
}

TEST(MessageCosts, AreNeverNegative) {
  const std::vector<AllReduceCost> lines = {{-1e-5, 1e-9}, {5e-5, 1e-9}};
  for (const double all : {-1.0, 0.0, 1e-9, 1.0}) {
    const MessageCosts costs = message_costs(lines, topology_of("bcube:3,2"), all);
    EXPECT_GE(costs.overhead, 0);
    EXPECT_GE(costs.latency[0], 0);
    EXPECT_GE(costs.latency[1], 0);
  }
}

// Of links with 100 Mbit/s, whose level 0 seems to have another rate.
std::vector<std::string> doubts_with(double bps, const MessageCosts& costs, double resent = 0) {
  const std::vector<AllReduceCost> lines = {{1e-5, 8 / bps}, {1e-5, 8 / 97e6}};
  return doubts_of(lines, control::LinkRates(100'000'000).on(topology_of("bcube:2,2")), costs,
                   resent);
}

TEST(Doubts, AreNoneOfAFitThatAgreesWithTheRates) {
  const MessageCosts costs{1'000, {1'000, 1'000}};
  EXPECT_EQ(doubts_with(97e6, costs, 0.01), std::vector<std::string>());
  const std::vector<AllReduceCost> fast = {{1e-5, 1e-12}, {1e-5, 1e-12}};
  EXPECT_TRUE(doubts_of(fast, topology_of("bcube:2,2"), costs, 0).empty()) << "there is no rate";
}

TEST(Doubts, SayWhatSpeaksAgainstAFit) {
  using testing::ElementsAre;
  using testing::HasSubstr;
  const MessageCosts costs{1'000, {1'000, 1'000}};
  EXPECT_THAT(doubts_with(61e6, costs),
              ElementsAre("bytes on level 0 took the time of 61 Mbit/s, and its rate is 100 "
                          "Mbit/s"));
  EXPECT_THAT(doubts_with(130e6, costs), ElementsAre(HasSubstr("130 Mbit/s")));
  EXPECT_THAT(doubts_with(-1, costs), ElementsAre(HasSubstr("no rate")));
  EXPECT_THAT(doubts_with(97e6, {1'000, {1'000, 0}}),
              ElementsAre("no latency was found on level 1"));
  EXPECT_THAT(doubts_with(97e6, costs, 0.105),
              ElementsAre(HasSubstr("10 % of the segments were sent again")));
}

class FittedCostsTest : public testing::Test {
 protected:
  FittedCostsTest() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    directory_.emplace(mkdtemp(name.data()));
  }
  ~FittedCostsTest() override { fs::remove_all(directory_->path()); }

  // On the cluster "here".
  void keep(const std::vector<std::int64_t>& latency) const {
    keep_fitted_costs(*directory_, "here", {.overhead = 3'100, .latency = latency});
  }
  std::string name(const char* algorithm, const char* spec = "bcube:3,2",
                   const std::string& cluster = "here") const {
    return with_fitted_costs(algorithm, *directory_, cluster, topology_of(spec));
  }
  void write(const std::string& text) { std::ofstream(directory_->path() / "fitted.json") << text; }

  std::optional<control::RunDirectory> directory_;
};

TEST_F(FittedCostsTest, AreThoseOfAutoAloneOnTheSameCluster) {
  EXPECT_EQ(name("auto"), "auto");
  keep({41'000, 43'500});
  EXPECT_EQ(name("auto"), "auto:3.1us,41us,43.5us");
  EXPECT_EQ(name("auto:1us,2us"), "auto:1us,2us");
  EXPECT_EQ(name("bml"), "bml");
  EXPECT_EQ(name(""), "");
  EXPECT_EQ(name("auto", "bcube:3,2", "there"), "auto");
  EXPECT_EQ(name("auto", "bcube:3,3"), "auto") << "it has other levels";
}

TEST_F(FittedCostsTest, FitIntoAName) {
  keep(std::vector<std::int64_t>(7, 40'100));
  EXPECT_EQ(name("auto", "bcube:2,7"), "auto:3.1us,40.1us");
}

TEST_F(FittedCostsTest, AreNoneInAFileOfAnotherForm) {
  for (const char* text : {"", "nonsense", "7", "[]", R"({"cluster":"here"})",
                           R"({"cluster":"here","overhead_ns":-1,"latency_ns":[1,1]})",
                           R"({"cluster":"here","overhead_ns":1,"latency_ns":[1]})",
                           R"({"cluster":"here","overhead_ns":1,"latency_ns":[1,-1]})",
                           R"({"cluster":"here","overhead_ns":1,"latency_ns":[1,"1"]})",
                           R"({"cluster":"here","overhead_ns":1,"latency_ns":[1,9999999999999]})",
                           R"({"cluster":"here","overhead_ns":1.5,"latency_ns":[1,1]})"}) {
    write(text);
    EXPECT_EQ(name("auto"), "auto") << text;
  }
}

}  // namespace
}  // namespace gradcube::cli
