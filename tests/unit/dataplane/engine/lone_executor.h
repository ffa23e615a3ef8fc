// An executor without an engine: contributions and results are made by hand.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_LONE_EXECUTOR_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_LONE_EXECUTOR_H_

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <string>

#include "control/plan/auto_plans.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/plan_executor.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {

inline constexpr std::uint16_t kPayload = 4 * control::kUnitBytes;  // room for the longest segment
inline constexpr unsigned kElementsPerUnit = control::kUnitBytes / sizeof(float);

// Thread 0 of one server, of an algorithm's own plan. Each piece has one unit of 16 floats, of a
// buffer of kElementsPerUnit * plan.pieces() elements, and a segment has room for so many units.
class LoneExecutor {
 public:
  LoneExecutor(const std::string& topology, bcube::ServerId server, std::uint32_t units = 1,
               const std::string& algorithm = "bml")
      : choice_(choice_of(algorithm, control::parse_topology(topology, "test"))),
        plan_(choice_.plan(choice_.plans() - 1)),
        session_(choice_.threads()),
        job_(1, *session_, {}, 1, true),
        packets_(make_pool("contributions", 511, kPayload)),
        executor_({choice_,
                   choice_.plans() - 1,
                   server,
                   aggregation::select_kernels(512),
                   units * static_cast<std::uint32_t>(control::kUnitBytes),
                   UINT32_MAX,
                   16,
                   {}},
                  0, 0, job_),
        schedule_(plan_, server, 0) {}

  PlanExecutor* operator->() { return &executor_; }
  TestSession& session() { return session_; }
  PacketPool& packets() { return packets_; }
  std::uint64_t elements() const { return std::uint64_t{plan_.pieces()} * kElementsPerUnit; }

  // The trainer submits its whole buffer, filled with `value`.
  void submit(float value, control::CollectiveKind kind = control::CollectiveKind::all_reduce) {
    session_.fill(elements(), value);
    const bool chunks = control::is_rank_ordered(kind);
    session_.publish(elements() / (chunks ? plan_.ranks() : 1), kind);
    ++submitted_;
    ASSERT_TRUE(executor_.begin_published());
  }

  // Thread 0 visits level w at step w.
  Flow& flow(protocol::Stage stage, unsigned level, unsigned digit) {
    return executor_.flow(stage, level, schedule_.offset_of_digit(level, digit));
  }
  void contribute(Flow& flow, std::uint64_t sequence, const Contribution& contribution) {
    EXPECT_TRUE(executor_.take(flow, sequence, contribution, {})) << "it is held";
  }

  // Units of equal elements, as a neighbour with the same request would send them.
  Contribution from_neighbour(float value, std::uint16_t bytes = control::kUnitBytes) {
    Contribution contribution;
    contribution.packet = packets_.allocate();
    auto* payload = reinterpret_cast<float*>(rte_pktmbuf_append(contribution.packet, kPayload));
    std::fill_n(payload, kPayload / sizeof(float), value);
    contribution.payload = reinterpret_cast<const std::uint8_t*>(payload);
    contribution.bytes = bytes;
    contribution.signature = {std::max(submitted_, 1U), static_cast<std::uint32_t>(elements()), 0,
                              0, 0};
    return contribution;
  }

  // The elements of one unit of the buffer, which are all equal.
  float unit(unsigned index) {
    const float* begin = session_.buffer() + index * kElementsPerUnit;
    for (unsigned i = 0; i < kElementsPerUnit; ++i)
      EXPECT_EQ(begin[i], begin[0]) << "element " << i;
    return *begin;
  }

 private:
  static control::PlanChoice choice_of(const std::string& algorithm,
                                       const control::Topology& topology) {
    return control::make_choice(algorithm, topology, control::Placement::all(topology), "test");
  }

  control::PlanChoice choice_;
  const control::Plan& plan_;
  TestSession session_;
  EngineJob job_;
  PacketPool packets_;
  PlanExecutor executor_;
  control::ThreadSchedule schedule_;
  unsigned submitted_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_LONE_EXECUTOR_H_
