// Nodes on a host whose memory ends at any moment, for a moment: what was done then is not lost.

#include <functional>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include "dataplane/engine/memory/guarded_memory.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/nodes_fixture.h"

namespace gradcube::dataplane {
namespace {

constexpr unsigned kMostAllocations = 2'000;  // of one step

// Nodes of their own for each moment at which memory may end.
class MomentaryNodes : public Nodes {
 public:
  using Nodes::expect_nothing_left;
  using Nodes::join;
  using Nodes::join_all;
  using Nodes::leave;
  using Nodes::run_for;
  using Nodes::told;

  // As `status` counts them.
  std::size_t trainers() const {
    std::size_t trainers = 0;
    for (const JobFacts& job : nodes_.jobs(now_)) trainers += job.trainers.size();
    return trainers;
  }
  void look() { nodes_.look(now_); }
  void tell_nobody() { nodes_.around().channel = nullptr; }
  // Its first page cannot be read, and has been.
  void fail_memory_of(TrainerId trainer) {
    std::uint8_t* const base = nodes_.at(trainer.server).region_base(trainer);
    const int empty = memfd_create("empty", MFD_CLOEXEC);
    ASSERT_EQ(mmap(base, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0), base);
    close(empty);
    EXPECT_EQ(*const_cast<volatile std::uint8_t*>(base), 0);
  }
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

// Of two trainers on each of two servers.
TrainerRequest one_of_two(unsigned local) {
  TrainerRequest request;
  request.job = "mnist";
  request.pid = 200 + local;
  request.heap_bytes = 4096;
  request.options.trainers = 2;
  request.options.members = {0, 1};
  request.local = local;
  return request;
}

// Where a trainer cannot be taken, nothing of it is kept, and it may try again.
TEST(NodesWithoutMemoryAtTimes, TakeATrainerThatJoinsAsAWholeOrNotAtAll) {
  for (const unsigned short_of : {0U, 1U}) {
    at_each_moment([short_of](MomentaryNodes& nodes, unsigned last) {
      bool got_by = false;
      std::vector<TrainerId> trainers{nodes.join(1, one_of_two(0)), nodes.join(1, one_of_two(1))};
      for (const unsigned local : {0U, 1U}) {
        const TrainerRequest request = one_of_two(local);
        std::optional<TrainerId> joined;
        const auto join = [&] { joined = nodes.join(0, request); };
        if (local == short_of) got_by = nodes.gets_by(last, join);
        EXPECT_EQ(nodes.trainers(), 2 + local + (joined.has_value() ? 1 : 0));
        if (!joined.has_value()) join();
        trainers.push_back(*joined);
      }
      nodes.run_for(seconds(1));
      for (const TrainerId trainer : trainers) {
        EXPECT_TRUE(nodes.told(trainer).admitted.has_value()) << nodes.told(trainer).why_refused;
        nodes.leave(trainer);
      }
      nodes.expect_nothing_left();
      return got_by;
    });
  }
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

TEST(NodesWithoutMemoryAtTimes, BeginAJobOnAllServersWhicheverStepFindsNone) {
  at_each_moment([](MomentaryNodes& nodes, unsigned last) {
    std::vector<TrainerId> trainers;
    for (const bcube::ServerId server : {0U, 1U, 2U}) trainers.push_back(nodes.join(server));
    // The recorder needs memory for the first word to each: it has it now.
    for (const TrainerId trainer : trainers) nodes.told(trainer);
    const bool got_by = nodes.gets_by(last, [&] { nodes.run_for(milliseconds(100)); });
    nodes.run_for(seconds(2));
    for (const TrainerId trainer : trainers) {
      EXPECT_TRUE(nodes.told(trainer).admitted.has_value()) << nodes.told(trainer).why_refused;
      EXPECT_EQ(nodes.told(trainer).failure(), "");
      nodes.leave(trainer);
    }
    nodes.expect_nothing_left();
    return got_by;
  });
}

// What engines computed from zeros is let go with the fault.
TEST(NodesWithoutMemoryAtTimes, SettleNoFaultUntilALookHasSeenToIt) {
  GuardedMemory::install_handler();
  MomentaryNodes nodes;
  const auto trainers = nodes.join_all();
  nodes.tell_nobody();
  nodes.fail_memory_of(trainers[1]);
  ASSERT_TRUE(GuardedMemory::pending());
  for (unsigned looks = 0; looks < 3; ++looks) {
    EXPECT_FALSE(nodes.gets_by(1, [&] { nodes.look(); }));
    EXPECT_TRUE(GuardedMemory::pending());
  }
  EXPECT_EQ(nodes.trainers(), 3U);
  nodes.look();
  EXPECT_TRUE(GuardedMemory::pending()) << "what is in flight may come from zeros";
  EXPECT_EQ(nodes.trainers(), 2U);
  nodes.look();
  EXPECT_FALSE(GuardedMemory::pending());
}

INSTANTIATE_TEST_SUITE_P(Departures, NodesWithoutMemory,
                         testing::Values(Departure::death, Departure::violation,
                                         Departure::orderly));

}  // namespace
}  // namespace gradcube::dataplane
