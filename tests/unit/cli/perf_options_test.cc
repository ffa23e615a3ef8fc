#include "cli/perf/perf_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cluster/running_cluster.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"

namespace gradcube::cli {
namespace {

using control::CollectiveKind;
using control::UsageError;
using testing::ElementsAre;
using testing::IsEmpty;

PerfOptions options_of(const char* collective) {
  PerfOptions options;
  options.collective = collective;
  return options;
}

TEST(PerfOptions, TakeEverySpellingOfACollective) {
  for (const auto& [text, kind] : {std::pair{"allreduce", CollectiveKind::all_reduce},
                                   std::pair{"all-reduce", CollectiveKind::all_reduce},
                                   std::pair{"reduce_scatter", CollectiveKind::reduce_scatter},
                                   std::pair{"reduce-scatter", CollectiveKind::reduce_scatter},
                                   std::pair{"allgather", CollectiveKind::all_gather},
                                   std::pair{"all_gather", CollectiveKind::all_gather},
                                   std::pair{"broadcast", CollectiveKind::broadcast},
                                   std::pair{"reduce", CollectiveKind::reduce},
                                   std::pair{"barrier", CollectiveKind::barrier}}) {
    EXPECT_EQ(settings_of(options_of(text)).kind, kind) << text;
  }
  EXPECT_THROW(settings_of(options_of("")), UsageError);
}

TEST(PerfOptions, OfABarrierHaveOneSizeOfNoBytes) {
  EXPECT_THAT(sizes_of(options_of("barrier")), ElementsAre(0));
  EXPECT_THAT(sizes_of(options_of("allreduce")), ElementsAre(1000, 64000, 1000000, 12500000));
}

TEST(PerfOptions, RoundSizesDownToWholeElementsAndToEqualChunks) {
  PerfSettings settings = settings_of(options_of("allreduce"));
  EXPECT_EQ(elements_of(1003, settings, 9), 250u);
  EXPECT_EQ(elements_of(0, settings, 9), 0u);
  EXPECT_THROW(elements_of(3, settings, 9), UsageError);
  for (const char* collective : {"reduce_scatter", "allgather"}) {
    settings = settings_of(options_of(collective));
    EXPECT_EQ(elements_of(1003, settings, 9), 243u);
    EXPECT_EQ(elements_of(36, settings, 9), 9u);
    EXPECT_EQ(elements_of(0, settings, 9), 0u);
    EXPECT_THROW(elements_of(35, settings, 9), UsageError);
  }
}

TEST(PerfOptions, ReadMembersAsAddresses) {
  const auto cube = control::parse_topology("bcube:3,2", "test");
  EXPECT_THAT(members_of(cube, ""), IsEmpty());
  EXPECT_THAT(members_of(cube, " 1,0 [1,2]  1,1 "), ElementsAre(3, 5, 4));
  EXPECT_THROW(members_of(cube, "   "), UsageError);
  EXPECT_THROW(members_of(cube, "0,0 3,0"), UsageError);
  EXPECT_THROW(members_of(cube, "0,0;0,1"), UsageError);
}

TEST(PerfOptions, HaveARootThatIsARankOfTheJob) {
  const auto cube = control::parse_topology("bcube:3,2", "test");
  const auto row = control::Placement::of(cube, std::vector<control::ServerId>{3, 4, 5}, "test");
  const control::Plan plan = control::make_plan("bml", cube, row, "test");
  PerfOptions options = options_of("broadcast");
  options.root = "2";
  EXPECT_NO_THROW(require_root(settings_of(options), plan));
  options.root = "3";
  EXPECT_THROW(require_root(settings_of(options), plan), UsageError);
}

TEST(PerfOptions, ReproducibleSumsOfFloat64TakeNoMoreTrainersThanTheirCarrier) {
  const auto plan_of = [](const char* topology) {
    return control::make_plan("bml", control::parse_topology(topology, "test"), "test");
  };
  PerfOptions options = options_of("allreduce");
  options.dtype = "float64";
  PerfSettings settings = settings_of(options);
  EXPECT_EQ(carried_bytes(settings, 300), 8u);
  settings.reproducible = true;
  EXPECT_EQ(carried_bytes(settings, 9), 16u);
  EXPECT_EQ(carried_bytes(settings, 2), 8u);
  EXPECT_NO_THROW(require_carrier(settings, plan_of("star:256")));
  try {
    require_carrier(settings, plan_of("bcube:20,2"));
    FAIL() << "400 trainers were taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("at most 256 trainers"), std::string::npos)
        << error.what();
  }
  settings.type = aggregation::DataType::float32;
  EXPECT_NO_THROW(require_carrier(settings, plan_of("bcube:20,2")));
  EXPECT_EQ(carried_bytes(settings, 16), 8u);
  EXPECT_EQ(carried_bytes(settings, 400), 16u);
  settings.kind = control::CollectiveKind::all_gather;
  EXPECT_EQ(carried_bytes(settings, 400), 4u);
}

}  // namespace
}  // namespace gradcube::cli
