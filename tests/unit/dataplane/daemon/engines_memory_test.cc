// The engines of nodes on a host whose memory ends at any moment, for a moment: a job that begins
// then has all of its packet memory at all of them, and one that ends leaves nothing. Its hub is at
// all engines of a server, or at none.

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/kernels.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/host/clock.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/hub_table_bytes.h"
#include "tests/unit/dataplane/daemon/sized_settings.h"

namespace gradcube::dataplane {
namespace {

constexpr unsigned kMostAllocations = 20'000;  // of a job's beginning, or end

// bcube:2,2, each server with two engines, which nobody polls.
class EnginesWithoutMemoryAtTimes : public testing::Test {
 protected:
  static LocalClusterOptions options() {
    LocalClusterOptions options;
    options.settings = settings_of("bcube:2,2", std::nullopt, 1500);
    options.settings.greeting_ns = 0;
    options.settings.probing_ns = 0;
    options.lcores = {{1, -1}, {2, -1}};
    options.timing.hub_threads = std::launch::deferred;
    return options;
  }
  NodeGroup& nodes() { return cluster_.nodes(); }

  void join_all() {
    for (const bcube::ServerId server : nodes().servers()) {
      trainers_.push_back(nodes().at(server).join({"job", 1000 + server, 1000, 1 << 16}, now_));
    }
  }
  void leave_all() {
    for (const TrainerId trainer : std::exchange(trainers_, {})) {
      nodes().at(trainer.server).leave(trainer, Departure::death, "", now_);
    }
  }
  void expect_nothing_left() {
    for (unsigned i = 0; i < 1'000 && !nodes().idle(); ++i) run_for_a_moment();
    ASSERT_TRUE(nodes().idle());
    EXPECT_EQ(cluster_.reserved_bytes(), 0U);
    for (const EngineAt& at : cluster_.engines()) EXPECT_TRUE(at.engine->jobs().empty());
  }
  void run_for_a_moment() {
    now_ += std::chrono::milliseconds(20);
    nodes().run(now_);
    nodes().look(now_);
    nodes().run(now_);
  }
  // Whether they did all there was to do, though there was no memory from their allocation number
  // `last` on.
  bool gets_by(unsigned last) {
    return gets_by(last, [this] { nodes().run(now_); });
  }
  bool gets_by(unsigned last, const std::function<void()>& step) {
    unsigned asked = 0;
    const trainer::NoMemory none([&] { return ++asked >= last; });
    try {
      step();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return asked < last;
  }
  // Of the first trainer alone.
  void wish_for_hub(std::uint32_t number) {
    const std::string table = hub_table({{"a", 1'000}, {"b", 3}});
    Node& node = nodes().at(trainers_[0].server);
    std::memcpy(node.region_base(trainers_[0]) + shared::kHeapOffset, table.data(), table.size());
    shared::MakeHub wish{};
    wish.type = shared::MessageType::make_hub;
    wish.number = number;
    wish.offset = shared::kHeapOffset;
    wish.bytes = table.size();
    ASSERT_TRUE(node.ask_hub(trainers_[0], wish));
  }
  void end_hub(std::uint32_t number) {
    nodes().at(trainers_[0].server).end_hub(trainers_[0], number);
  }
  // How many engines have one. Those of a server that do have the one that its session tells of.
  unsigned engines_with_hub() {
    unsigned with_hub = 0;
    for (const EngineAt& at : cluster_.engines()) {
      EngineJob& job = *at.engine->jobs().at(0);
      const ServerHub* const its = job.hub() == nullptr ? nullptr : &job.hub()->hub();
      EXPECT_EQ(job.session().hub(), its) << "server " << at.engine->settings().server;
      with_hub += its == nullptr ? 0 : 1;
    }
    return with_hub;
  }
  void expect_job() {
    const std::vector<JobFacts> jobs = nodes().jobs(now_);
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].state, JobState::running) << jobs[0].why;
    for (const EngineAt& at : cluster_.engines()) {
      ASSERT_EQ(at.engine->jobs().size(), 1U);
      EngineJob& job = *at.engine->jobs()[0];
      EXPECT_EQ(job.state, EngineJob::State::running);
      EXPECT_GT(job.reserved(), 0U);
      EXPECT_EQ(job.reserved(), at.packets->reserved());
    }
  }

  VirtualClock clock_{1'000'000};
  EventQueue events_;
  LocalCluster cluster_{options(), clock_, aggregation::select_kernels(0), events_};
  control::Instant now_ = std::chrono::seconds(1);
  std::vector<TrainerId> trainers_;
};

TEST_F(EnginesWithoutMemoryAtTimes, HaveAJobWithItsPacketsWhenThereIsSomeAgain) {
  bool got_by = false;
  for (unsigned last = 1; !got_by; ++last) {
    ASSERT_LT(last, kMostAllocations);
    SCOPED_TRACE("without memory from allocation " + std::to_string(last) + " on");
    join_all();
    got_by = gets_by(last);
    for (unsigned i = 0; i < 10; ++i) run_for_a_moment();
    expect_job();
    leave_all();
    expect_nothing_left();
    if (HasFailure()) return;
  }
}

TEST_F(EnginesWithoutMemoryAtTimes, LetGoOfAJobWhenThereIsSomeAgain) {
  bool got_by = false;
  for (unsigned last = 1; !got_by; ++last) {
    ASSERT_LT(last, kMostAllocations);
    SCOPED_TRACE("without memory from allocation " + std::to_string(last) + " on");
    join_all();
    for (unsigned i = 0; i < 10; ++i) run_for_a_moment();
    expect_job();
    leave_all();
    got_by = gets_by(last);
    expect_nothing_left();
    if (HasFailure()) return;
  }
}

TEST_F(EnginesWithoutMemoryAtTimes, HaveAHubOrHaveNoneAtAll) {
  join_all();
  for (unsigned i = 0; i < 10; ++i) run_for_a_moment();
  expect_job();
  const std::uint64_t without = cluster_.reserved_bytes();
  bool got_by = false;
  for (unsigned last = 1; !got_by; ++last) {
    ASSERT_LT(last, kMostAllocations);
    SCOPED_TRACE("without memory from allocation " + std::to_string(last) + " on");
    wish_for_hub(last);
    now_ += std::chrono::milliseconds(20);
    got_by = gets_by(last, [this] { nodes().look(now_); });
    for (unsigned i = 0; i < 10; ++i) run_for_a_moment();
    const unsigned with_hub = engines_with_hub();
    EXPECT_TRUE(with_hub == 2 || (with_hub == 0 && !got_by)) << with_hub;
    end_hub(last);
    for (unsigned i = 0; i < 10; ++i) run_for_a_moment();
    EXPECT_EQ(engines_with_hub(), 0U);
    EXPECT_EQ(cluster_.reserved_bytes(), without);
    if (HasFailure()) return;
  }
  leave_all();
  expect_nothing_left();
}

}  // namespace
}  // namespace gradcube::dataplane
