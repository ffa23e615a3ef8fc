// What a hub that is freed leaves to its pushes, and to threads that are in its calls.

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/held_memory.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/trainer/hub_fixture.h"

namespace gradcube::trainer {
namespace {

class HubFree : public HubTest {
 protected:
  // Of the first key, whose new weights are to be copied to `weights`. The push has ended well, and
  // its end was not reported.
  std::uint64_t push_to_the_end(gradcube_session* session, gradcube_hub* hub, float* weights) {
    init(session, hub, 0);
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_hub_push_pull(hub, 0, gradients_.data(), weights, 0.5, &request),
              GRADCUBE_OK);
    finish_barrier(session);
    return request;
  }
  static void finish_barrier(gradcube_session* session) {
    std::uint64_t barrier = 0;
    ASSERT_EQ(gradcube_barrier(session, &barrier), GRADCUBE_OK);
    wait(session, barrier);
  }
  void lose(gradcube_session* session) {
    daemon_.kill();
    std::uint64_t barrier = 0;
    ASSERT_EQ(gradcube_barrier(session, &barrier), GRADCUBE_OK);
    ASSERT_EQ(gradcube_wait(session, barrier, kLong), GRADCUBE_ENODAEMON);
  }

  const std::vector<float> gradients_ = std::vector<float>(100, 3);
  const std::vector<float> none_ = std::vector<float>(100, -1);
};

TEST_F(HubFree, OfALostSessionEndsAPushWhoseWeightsWereNotCopiedAsTheSession) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> weights = none_;
  const std::uint64_t request = push_to_the_end(session, hub, weights.data());
  lose(session);
  EXPECT_EQ(free(hub), GRADCUBE_ENODAEMON);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ENODAEMON);
  says(session, "went away");
  EXPECT_EQ(weights, none_);
}

TEST_F(HubFree, AfterLeavingEndsAPushWhoseWeightsWereNotCopiedAsTheSession) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> weights = none_;
  const std::uint64_t request = push_to_the_end(session, hub, weights.data());
  init(session, hub, 1);
  const std::uint64_t other = push(session, hub, 1, none_.data());
  finish_barrier(session);
  gradcube_leave(session);
  EXPECT_EQ(free(hub), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_EINVAL);
  says(session, "has left its job");
  EXPECT_EQ(weights, none_);
  EXPECT_EQ(gradcube_wait(session, other, kLong), GRADCUBE_OK) << "which wants no weights";
}

TEST_F(HubFree, ThatIsRefusedLeavesTheWeightsToThePushesOfALostSession) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> weights = none_;
  const std::uint64_t request = push_to_the_end(session, hub, weights.data());
  init(session, hub, 1);
  lose(session);
  {
    HeldMemory bias(20);
    std::jthread pulling(
        [&] { EXPECT_EQ(gradcube_hub_pull(hub, 1, bias.as<void>()), GRADCUBE_OK); });
    EXPECT_TRUE(eventually([&] { return bias.holds_a_thread(); }));
    EXPECT_EQ(free(hub), GRADCUBE_EAGAIN);
    bias.release();
  }
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(weights, gradients_);
  EXPECT_EQ(free(hub), GRADCUBE_ENODAEMON);
}

TEST_F(HubFree, IsRefusedWhileAThreadReadsWhatItIsToPush) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  HeldMemory weights(400);
  std::jthread pushing([&] {
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_hub_init(hub, 0, weights.as<void>(), &request), GRADCUBE_OK);
    wait(session, request);
  });
  EXPECT_TRUE(eventually([&] { return weights.holds_a_thread(); }));
  EXPECT_EQ(gradcube_hub_free(hub, kLong), GRADCUBE_EAGAIN);
  says(session, "another thread pushes to the hub");
  weights.release();
}

TEST_F(HubFree, IsNotRefusedForPushesThatHaveFailedForWantOfMemory) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  std::uint64_t request = 0;
  int no_key = 0;
  int no_place = 0;
  {
    const NoMemory none;
    no_key = gradcube_hub_push(hub, 7, gradients_.data(), 0.5, &request);
    no_place = gradcube_hub_push(hub, 0, gradients_.data(), 0.5, &request);
  }
  EXPECT_EQ(no_key, GRADCUBE_ENOMEM) << "not even for the words that refuse it";
  EXPECT_EQ(no_place, GRADCUBE_ENOMEM);
  wait(session, push(session, hub, 0, gradients_.data()));
  EXPECT_EQ(free(hub), GRADCUBE_OK) << gradcube_last_error(session);
}

TEST_F(HubFree, FreesNothingWhereThereIsNoMemoryForTheCall) {
  gradcube_session* session = open("unpushed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::uint64_t request = push_first(session, hub, 0);
  int in_flight = 0;
  {
    const NoMemory none;
    in_flight = free(hub);
  }
  EXPECT_EQ(in_flight, GRADCUBE_EAGAIN);
  lose(session);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ENODAEMON) << "the hub is there still";
  EXPECT_EQ(free(hub), GRADCUBE_ENODAEMON);
}

TEST_F(HubFree, IsNotRefusedForPushesOfALostSessionWhoseEndWasReportedWithoutMemory) {
  gradcube_session* session = open("unpushed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::uint64_t request = push_first(session, hub, 0);
  lose(session);
  int code = 0;
  {
    const NoMemory none;
    code = gradcube_wait(session, request, kLong);
  }
  EXPECT_EQ(code, GRADCUBE_ENODAEMON);
  EXPECT_EQ(free(hub), GRADCUBE_ENODAEMON);
}

TEST_F(HubFree, IsNotRefusedForPushesWhoseWeightsWereTakenBackAndReportedSoWithoutMemory) {
  gradcube_session* session = open("dispossessed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> weights = none_;
  const std::uint64_t request = push_to_the_end(session, hub, weights.data());
  int code = 0;
  {
    const NoMemory none;
    code = gradcube_wait(session, request, kLong);
  }
  EXPECT_EQ(code, GRADCUBE_ENODAEMON);
  EXPECT_EQ(free(hub), GRADCUBE_OK) << gradcube_last_error(session);
}

}  // namespace
}  // namespace gradcube::trainer
