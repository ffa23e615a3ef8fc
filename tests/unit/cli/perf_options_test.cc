#include "cli/perf/perf_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "cli/cluster/running_cluster.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"

namespace gradcube::cli {
namespace {

using control::CollectiveKind;
using control::UsageError;
using testing::ElementsAre;
using testing::IsEmpty;

PerfOptions options_of(CollectiveKind kind) {
  PerfOptions options;
  options.settings.kind = kind;
  return options;
}

TEST(PerfOptions, OfABarrierHaveOneSizeOfNoBytes) {
  EXPECT_THAT(sizes_of(options_of(CollectiveKind::barrier)), ElementsAre(0));
  EXPECT_THAT(sizes_of(options_of(CollectiveKind::all_reduce)),
              ElementsAre(1000, 64000, 1000000, 12500000));
}

TEST(PerfOptions, RoundSizesDownToWholeElementsAndToEqualChunks) {
  PerfSettings settings = settings_of(options_of(CollectiveKind::all_reduce));
  EXPECT_EQ(elements_of(1003, settings, 9), 250u);
  EXPECT_EQ(elements_of(0, settings, 9), 0u);
  EXPECT_THROW(elements_of(3, settings, 9), UsageError);
  for (const auto collective : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
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
  PerfOptions options = options_of(CollectiveKind::broadcast);
  options.settings.root = 2;
  EXPECT_NO_THROW(require_root(settings_of(options), plan));
  options.settings.root = 3;
  EXPECT_THROW(require_root(settings_of(options), plan), UsageError);
}

TEST(PerfOptions, ReproducibleSumsOfFloat64TakeNoMoreTrainersThanTheirCarrier) {
  const auto plan_of = [](const char* topology) {
    return control::make_plan("bml", control::parse_topology(topology, "test"), "test");
  };
  PerfOptions options = options_of(CollectiveKind::all_reduce);
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

std::vector<std::uint64_t> list(const char* text) {
  SizeOptions options;
  options.sizes = text;
  return sizes_of(options);
}

std::vector<std::uint64_t> range(const char* least, const char* most, unsigned factor = 2) {
  SizeOptions options;
  options.min_bytes = least;
  options.max_bytes = most;
  options.factor = factor;
  return sizes_of(options);
}

TEST(SizeList, ReadsDecimalAndBinarySuffixesFractionsAndZero) {
  EXPECT_THAT(list("1K,64K,12.5M"), ElementsAre(1000, 64000, 12500000));
  EXPECT_THAT(list("1k,1Ki"), ElementsAre(1000, 1024));
  EXPECT_THAT(list("0"), ElementsAre(0));
  EXPECT_THAT(list("1,7,97M"), ElementsAre(1, 7, 97000000));
}

TEST(SizeList, RefusesTextsThatAreNotSizes) {
  for (const char* text :
       {"", ",", "1K,", ",1K", "1K,,2K", "1Q", "-1", "K", "1.2.3M", "nan", "1e400", "0.0000001"}) {
    EXPECT_THROW(list(text), UsageError) << text;
  }
}

TEST(SizeRange, MultipliesUpToItsEnd) {
  EXPECT_THAT(range("1K", "16K"), ElementsAre(1000, 2000, 4000, 8000, 16000));
  EXPECT_THAT(range("1K", "15999", 4), ElementsAre(1000, 4000));
}

TEST(SizeRange, IsOneSizeWhereItsEndsMeet) {
  EXPECT_THAT(range("5", "5"), ElementsAre(5));
  EXPECT_THAT(range("5", ""), ElementsAre(5));
  EXPECT_THAT(range("0", "0"), ElementsAre(0));
}

TEST(SizeRange, RefusesOneThatIsEmptyOrWouldNotEnd) {
  EXPECT_THROW(range("2", "1"), UsageError);
  EXPECT_THROW(range("0", "8"), UsageError);
}

}  // namespace
}  // namespace gradcube::cli
