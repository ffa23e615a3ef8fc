// Nodes on a host whose memory ends at any moment, for a moment: what was done then is not lost.

#include <functional>
#include <new>

#include "tests/unit/dataplane/daemon/nodes_fixture.h"
#include "tests/unit/trainer/scarce_memory.h"

namespace gradcube::dataplane {
namespace {

constexpr unsigned kMostAllocations = 2'000;  // of one step

// Nodes of their own for each moment at which memory may end.
class MomentaryNodes : public Nodes {
 public:
  using Nodes::expect_nothing_left;
  using Nodes::join_all;
  using Nodes::leave;
  using Nodes::run_for;
  using Nodes::told;

  // Whether it came to its end though there was no memory from its allocation number `last` on.
  static bool gets_by(unsigned last, const std::function<void()>& step) {
    unsigned asked = 0;
    const trainer::NoMemory none([&] { return ++asked >= last; });
    try {
      step();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return asked < last;
  }

 private:
  void TestBody() override {}
};

// body(nodes, last): whether the step came to its end. At each moment of it memory ends once.
void at_each_moment(const std::function<bool(MomentaryNodes&, unsigned)>& body) {
  bool got_by = false;
  for (unsigned last = 1; !got_by; ++last) {
    ASSERT_LT(last, kMostAllocations);
    SCOPED_TRACE("without memory from allocation " + std::to_string(last) + " on");
    MomentaryNodes nodes;
    got_by = body(nodes, last);
    if (testing::Test::HasFailure()) return;
  }
}

class NodesWithoutMemory : public testing::TestWithParam<Departure> {};

TEST_P(NodesWithoutMemory, TellTheOthersOfADepartureWhenThereIsSomeAgain) {
  at_each_moment([](MomentaryNodes& nodes, unsigned last) {
    const auto trainers = nodes.join_all();
    const bool got_by = nodes.gets_by(last, [&] { nodes.leave(trainers[1], GetParam()); });
    nodes.run_for(seconds(1));
    if (GetParam() == Departure::orderly) {
      // The job goes on without it, until its last trainer leaves.
      nodes.leave(trainers[0]);
      nodes.leave(trainers[2]);
      nodes.expect_nothing_left();
      return got_by;
    }
    for (const TrainerId survivor : {trainers[0], trainers[2]}) {
      expect_words(nodes.told(survivor).failure(),
                   {"the trainer of job \"mnist\" on server [1] (pid 101) ",
                    GetParam() == Departure::death ? "died" : "broke a rule"});
      nodes.leave(survivor);
    }
    nodes.expect_nothing_left();
    return got_by;
  });
}

// Other than a departure, nobody says a second time what one machine asks of another.
TEST(NodesWithoutMemoryAtTimes, EndAJobOnAllServersWhicheverStepFindsNone) {
  at_each_moment([](MomentaryNodes& nodes, unsigned last) {
    const auto trainers = nodes.join_all();
    nodes.leave(trainers[1], Departure::violation);
    const bool got_by = nodes.gets_by(last, [&] { nodes.run_for(seconds(1)); });
    nodes.run_for(seconds(10));
    for (const TrainerId survivor : {trainers[0], trainers[2]}) {
      expect_words(nodes.told(survivor).failure(),
                   {"the trainer of job \"mnist\" on server [1] (pid 101) broke a rule"});
      nodes.leave(survivor);
    }
    nodes.expect_nothing_left();
    return got_by;
  });
}

INSTANTIATE_TEST_SUITE_P(Departures, NodesWithoutMemory,
                         testing::Values(Departure::death, Departure::violation,
                                         Departure::orderly));

}  // namespace
}  // namespace gradcube::dataplane
