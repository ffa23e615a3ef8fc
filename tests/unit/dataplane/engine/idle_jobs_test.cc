// What idle jobs at an engine take from one that works: none of its credit, and no frame.

#include <deque>

#include "tests/unit/dataplane/engine/engine_alone.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;

constexpr unsigned kIdleJobs = 32;
constexpr unsigned kSegments = 64;  // of the collective, in each direction
constexpr unsigned kBudget = 24;    // segments

struct IdleJob {
  TestSession session{1};
  std::unique_ptr<EngineJob> job;
};

struct Exchange {
  std::uint64_t limit = 0;  // how far the neighbour may send
  std::size_t frames = 0;   // sent by the working job
  std::size_t frames_of_idle = 0;
};

// An engine whose port has a budget of fewer segments than all its jobs have flows.
class EngineWithIdleJobs final : public EngineAlone {
 public:
  EngineWithIdleJobs()
      : EngineAlone(kBudget * (control::kUnitBytes + protocol::kSegmentHeaderBytes)) {}
  ~EngineWithIdleJobs() override {
    for (const IdleJob& idle : idle_) engine_->detach(idle.job->id());
  }
  void TestBody() override {}

  void add_idle_jobs(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      IdleJob& idle = idle_.emplace_back();
      attach(idle.job, *idle.session, 1000 + i);
      engine_->start(1000 + i);
      poll();
      sent();
    }
  }

  // The neighbour sends a few segments, one for each iteration, and has many more.
  Exchange exchange() {
    submit(1.0F, 2 * kSegments * kPerUnit);
    poll();
    Exchange exchange;
    for (std::uint32_t sequence = 0; sequence < 8; ++sequence) {
      Frame frame = contribution(sequence);
      frame.segment.count = 2 * kSegments * kPerUnit;
      frame.transport.backlog = kSegments - sequence;
      arrive(frame);
      for (const protocol::ParsedFrame& each : sent()) {
        ++(each.transport.job == kJob ? exchange.frames : exchange.frames_of_idle);
      }
    }
    exchange.limit = job_->executors().front().flow(Stage::aggregation, 0, 1).receive.limit();
    return exchange;
  }

 private:
  std::deque<IdleJob> idle_;
};

Exchange exchange_beside(unsigned idle_jobs) {
  EngineWithIdleJobs engine;
  engine.add_idle_jobs(idle_jobs);
  return engine.exchange();
}

TEST(IdleJobsAtAnEngine, TakeNoCreditAndNoFrameFromOneThatWorks) {
  const Exchange alone = exchange_beside(0);
  const Exchange beside = exchange_beside(kIdleJobs);
  EXPECT_EQ(beside.limit, alone.limit);
  EXPECT_EQ(beside.frames, alone.frames);
  EXPECT_EQ(beside.frames_of_idle, 0u);
}

}  // namespace
}  // namespace gradcube::dataplane
