// What a node takes of its trainers itself, without engines.
#include "dataplane/daemon/node/member.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "control/plan/base/topology.h"
#include "dataplane/daemon/engines/job_plans.h"
#include "dataplane/engine/event_queue.h"
#include "tests/unit/dataplane/engine/submission_entry.h"

namespace gradcube::dataplane {
namespace {

class MembersWithoutEngines : public testing::Test {
 protected:
  // Fills the trainer's ring.
  void submit_all(unsigned local) {
    const SessionRegion& region = member_->session().region(local);
    for (std::uint64_t i = 0; i < shared::kRingEntries; ++i) {
      shared::Submission& entry = submission_entry(region, i);
      entry = {};
      entry.request = i + 1;
      entry.offset = shared::kHeapOffset;
      entry.collective.kind = static_cast<std::uint8_t>(shared::CollectiveKind::barrier);
    }
    region.header().submission_tail.store(shared::kRingEntries);
  }
  std::uint64_t taken() const {
    std::uint64_t taken = 0;
    for (unsigned local = 0; local < member_->trainers(); ++local) {
      taken += member_->session().region(local).header().submission_head.load();
    }
    return taken;
  }
  void SetUp() override {
    control::JoinRequest request;
    request.name = "mnist";
    request.options.trainers = 2;
    request.options = completed(request.options, topology_, 1);
    member_ = std::make_unique<Member>(request, "[0]", std::make_shared<SessionRegion>(4096),
                                       PlanShelf().plans(request.options, topology_), engines_);
    member_->add(1, {}, std::make_shared<SessionRegion>(4096));
  }

  control::Topology topology_ = control::parse_topology("star:3", "here");
  EventQueue events_;
  NodeEngines engines_{topology_.space(), 0, {}, {}, {}, events_};
  std::unique_ptr<Member> member_;
};

// A trainer that submits as fast as this is taken must not keep the control thread.
TEST_F(MembersWithoutEngines, TakeOneRingsLengthAtATimeOfWhateverTrainersSubmit) {
  for (const unsigned local : {0U, 1U}) submit_all(local);
  EXPECT_STREQ(member_->take_submissions(), nullptr);
  EXPECT_EQ(taken(), shared::kRingEntries);
  EXPECT_STREQ(member_->take_submissions(), nullptr);
  EXPECT_EQ(taken(), 2 * shared::kRingEntries) << "the rest comes next";
}

TEST_F(MembersWithoutEngines, FailAllThatComesThoughTheyTakeALittleAtATime) {
  for (const unsigned local : {0U, 1U}) submit_all(local);
  member_->end(0);
  for (int look = 0; look < 2; ++look) EXPECT_STREQ(member_->fail_submissions(), nullptr);
  for (const unsigned local : {0U, 1U}) {
    EXPECT_EQ(member_->session().region(local).header().completion_tail.load(),
              shared::kRingEntries);
  }
}

}  // namespace
}  // namespace gradcube::dataplane
