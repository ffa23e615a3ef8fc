// A session's hub: how it is pushed to, read and freed.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "control/checkpoint/checkpoint_header.h"
#include "tests/support/held_memory.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/trainer/hub_fixture.h"

namespace gradcube::trainer {
namespace {

TEST_F(HubTest, GivesBackTheWeightsThatItWasGiven) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> first(100, 1.5F);
  const std::vector<std::uint16_t> second(10, 77);
  std::uint64_t requests[2] = {};
  ASSERT_EQ(gradcube_hub_init(hub, 0, first.data(), &requests[0]), GRADCUBE_OK);
  ASSERT_EQ(gradcube_hub_init(hub, 1, second.data(), &requests[1]), GRADCUBE_OK);
  for (const std::uint64_t request : requests) wait(session, request);
  std::vector<float> pulled(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, pulled.data()), GRADCUBE_OK);
  EXPECT_EQ(pulled, first);
  std::vector<std::uint16_t> other(10);
  EXPECT_EQ(gradcube_hub_pull(hub, 1, other.data()), GRADCUBE_OK);
  EXPECT_EQ(other, second);
  const auto* in_place = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(in_place, nullptr);
  EXPECT_EQ(std::vector<float>(in_place, in_place + 100), first);
}

TEST_F(HubTest, CopiesNewWeightsWhenTheEndOfAPushIsReported) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  float* in_heap = floats(session, 100, 3);
  const std::vector<float> elsewhere(100, 5);
  init(session, hub, 0);
  for (const float* gradients : {static_cast<const float*>(in_heap), elsewhere.data()}) {
    std::vector<float> weights(100);
    std::uint64_t request = 0;
    ASSERT_EQ(gradcube_hub_push_pull(hub, 0, gradients, weights.data(), 0.5, &request),
              GRADCUBE_OK);
    wait(session, request);
    EXPECT_EQ(weights, std::vector<float>(100, gradients[0]));
  }
  EXPECT_EQ(elsewhere, std::vector<float>(100, 5)) << "memory that is not the heap's is only read";
}

TEST_F(HubTest, PushesAKeyByItsPlaceAmongTheNames) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> gradients(100, 1);
  init(session, hub, 0);
  wait(session, push(session, hub, 0, gradients.data(), 0.125));
  ASSERT_TRUE(
      eventually([&] { return is_push(daemon_.heard().submission, shared::PushKind::gradients); }));
  shared::Submission heard = daemon_.heard().submission;
  EXPECT_EQ(heard.push.key, 2U);  // bias, norm, weight
  EXPECT_EQ(heard.count, 100U);
  EXPECT_EQ(heard.dtype, GRADCUBE_FLOAT32);
  EXPECT_EQ(heard.push.hub, 1U);
  EXPECT_EQ(heard.push.rate, 0.125);
  EXPECT_EQ(heard.push.plane, 0U);

  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_hub_init(hub, 1, gradients.data(), &request), GRADCUBE_OK);
  wait(session, request);
  ASSERT_TRUE(
      eventually([&] { return is_push(daemon_.heard().submission, shared::PushKind::weights); }));
  heard = daemon_.heard().submission;
  EXPECT_EQ(heard.push.key, 0U);
  EXPECT_EQ(heard.dtype, GRADCUBE_BFLOAT16);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(gradients.data());
  EXPECT_EQ(heard.push.digest,
            static_cast<std::uint32_t>(control::checkpoint_checksum({bytes, std::size_t{10} * 2})))
      << "what all push alike";
}

TEST_F(HubTest, HasNoWeightsOfAKeyBeforeItsFirstPush) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> values(100, 1);
  std::uint64_t request = 0;
  const auto refused = [&] {
    const std::string why = gradcube_last_error(session);
    return why.find("'weight' of the hub has no weights: push them first") != std::string::npos;
  };
  EXPECT_EQ(gradcube_hub_push(hub, 0, values.data(), 0.5, &request), GRADCUBE_EINVAL);
  EXPECT_TRUE(refused());
  EXPECT_EQ(gradcube_hub_pull(hub, 0, values.data()), GRADCUBE_EINVAL);
  EXPECT_TRUE(refused());
  EXPECT_EQ(gradcube_hub_weights(hub, 0), nullptr);
  EXPECT_TRUE(refused());
  EXPECT_EQ(values, std::vector<float>(100, 1)) << "and nothing was written";
  init(session, hub, 0);
  wait(session, push(session, hub, 0, values.data(), 0.5));
}

TEST_F(HubTest, ShowsNoWeightsOfAKeyWhileItsFirstPushIsInFlight) {
  gradcube_session* session = open("unpushed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::uint64_t request = push_first(session, hub, 0);
  EXPECT_EQ(gradcube_hub_weights(hub, 0), nullptr) << "else it shows zeros, should the push fail";
  daemon_.release();
  wait(session, request);
  const auto* shown = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(shown, nullptr);
  EXPECT_EQ(shown[99], 1.5F);
}

TEST_F(HubTest, HasNoWeightsOfAKeyWhoseLastPushHasFailed) {
  gradcube_session* session = open("gradientless");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  init(session, hub, 1);
  std::vector<float> values(100, 1);
  EXPECT_EQ(gradcube_wait(session, push(session, hub, 0, values.data()), kLong), GRADCUBE_EPEER);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, values.data()), GRADCUBE_EPEER);
  EXPECT_NE(std::string(gradcube_last_error(session)).find("its last push failed"),
            std::string::npos);
  EXPECT_EQ(gradcube_hub_weights(hub, 0), nullptr);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, "/nowhere/model.hub", 1), GRADCUBE_EPEER);
  EXPECT_EQ(gradcube_hub_pull(hub, 1, values.data()), GRADCUBE_OK) << "another key";
}

// The job has ended, and the daemon keeps the weights for those that read them.
TEST_F(HubTest, ThatHasEndedHasTheWeightsOfTheLastStepAndMakesNoCheckpoint) {
  gradcube_session* session = open("bereft");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  for (const std::size_t key : {0, 1, 2}) init(session, hub, key);
  ASSERT_EQ(gradcube_barrier(session, &request_), GRADCUBE_OK);
  wait(session, request_);  // and the hub has ended
  std::vector<float> weights(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_OK);
  EXPECT_EQ(weights, std::vector<float>(100, 1.5F));
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, "/nowhere/model.hub", 1), GRADCUBE_EPEER);
  EXPECT_NE(std::string(gradcube_last_error(session)).find(kFailure), std::string::npos)
      << gradcube_last_error(session);
}

// Whoever has copied some of what a daemon has taken back has zeros.
TEST_F(HubTest, WhoseMemoryIsTakenBackIsNotReadAsZeros) {
  gradcube_session* session = open("dispossessed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  for (const std::size_t key : {0, 1, 2}) init(session, hub, key);
  ASSERT_EQ(gradcube_barrier(session, &request_), GRADCUBE_OK);
  wait(session, request_);
  std::vector<float> weights(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_ENODAEMON);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, "/nowhere/model.hub", 1), GRADCUBE_ENODAEMON);
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_hub_push_pull(hub, 0, weights.data(), weights.data(), 0.5, &request),
            GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ENODAEMON);
}

TEST_F(HubTest, WhoseTrainerAbortsIsNotReadFromThenOnButForWhatItHasShown) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  const auto* shown = static_cast<const volatile float*>(gradcube_hub_weights(hub, 0));
  ASSERT_EQ(gradcube_abort(session), GRADCUBE_OK);
  std::vector<float> pulled(100, -1);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, pulled.data()), GRADCUBE_EABORTED);
  EXPECT_EQ(pulled, std::vector<float>(100, -1));
  EXPECT_EQ(gradcube_hub_weights(hub, 0), nullptr);
  EXPECT_EQ(shown[99], 1.5F);
}

TEST_F(HubTest, WeightsThatAreShownCannotBeReadWhenTheHubWasFreed) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  const auto* shown = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(shown, nullptr);
  EXPECT_EQ(shown[99], 1.5F);
  EXPECT_EQ(free(hub), GRADCUBE_OK);
  EXPECT_FALSE(can_be_read(shown));
}

TEST_F(HubTest, StillHasTheWeightsThatWereShownAfterAnAbortWithoutMemory) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  const auto* shown = static_cast<const volatile float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(shown, nullptr);
  {
    const NoMemory none;
    gradcube_abort(session);
  }
  EXPECT_EQ(shown[99], 1.5F);
}

TEST_F(HubTest, IsNotFreedWhileAPushIsInFlight) {
  gradcube_session* session = open("unpushed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::uint64_t request = push_first(session, hub, 0);
  EXPECT_EQ(free(hub), GRADCUBE_EAGAIN);
  EXPECT_EQ(daemon_.heard().hub_ends, 0);
  daemon_.release();
  wait(session, request);
  EXPECT_EQ(free(hub), GRADCUBE_OK);
  EXPECT_TRUE(eventually([&] { return daemon_.heard().hub_ends == 1; }));
}

// To free a hub is a collective, which other trainers may wait for.
TEST_F(HubTest, IsNotFreedWhileNothingMoreCanBeSubmitted) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<std::uint64_t> requests;
  float* buffer = floats(session, shared::kRingEntries * 16);
  for (unsigned i = 0; i < shared::kRingEntries; ++i) {
    requests.push_back(start(session, buffer + std::size_t{i} * 16, 1));
  }
  EXPECT_EQ(free(hub), GRADCUBE_EAGAIN);
  EXPECT_NE(std::string(gradcube_last_error(session)).find("which is the limit"),
            std::string::npos);
  for (const std::uint64_t request : requests) wait(session, request);
  init(session, hub, 0);
  EXPECT_EQ(free(hub), GRADCUBE_OK);
  EXPECT_TRUE(eventually([&] { return daemon_.heard().hub_ends == 1; }));
}

TEST_F(HubTest, TakesNoKeyTwiceBeforeItsEndIsReported) {
  gradcube_session* session = open("unpushed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> weights(100);
  const std::uint64_t request = push_first(session, hub, 0);
  std::uint64_t other = 0;
  EXPECT_EQ(gradcube_hub_push(hub, 0, weights.data(), 0.5, &other), GRADCUBE_EAGAIN);
  EXPECT_NE(std::string(gradcube_last_error(session)).find("weight"), std::string::npos);
  EXPECT_EQ(gradcube_hub_init(hub, 0, weights.data(), &other), GRADCUBE_EAGAIN);
  EXPECT_EQ(gradcube_hub_push_pull(hub, 0, weights.data(), weights.data(), 0.5, &other),
            GRADCUBE_EAGAIN);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_EAGAIN);
  std::uint64_t second = 0;
  EXPECT_EQ(gradcube_hub_init(hub, 1, weights.data(), &second), GRADCUBE_OK);
  daemon_.release();
  wait(session, request);
  wait(session, second);
  wait(session, push(session, hub, 0, weights.data()));
}

// Else threads that pull in turns would keep the push from beginning for ever.
TEST_F(HubTest, LetsNoPullOfAKeyBeginWhileAPushWaitsForOthers) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  HeldMemory held(400);
  std::jthread pulling([&] { EXPECT_EQ(gradcube_hub_pull(hub, 0, held.as<void>()), GRADCUBE_OK); });
  EXPECT_TRUE(eventually([&] { return held.holds_a_thread(); }));
  const std::vector<float> gradients(100, 3);
  std::vector<float> weights(100);
  std::jthread pushing([&] { wait(session, push(session, hub, 0, gradients.data())); });
  EXPECT_TRUE(
      eventually([&] { return gradcube_hub_pull(hub, 0, weights.data()) == GRADCUBE_EAGAIN; }));
  held.release();
  pushing.join();
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_OK);
  EXPECT_EQ(weights, gradients);
}

TEST_F(HubTest, RefusesKeysAndBuffersThatAreNone) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::vector<float> buffer(100);
  std::uint64_t request = 0;
  for (const std::size_t key : {std::size_t{3}, SIZE_MAX}) {
    EXPECT_EQ(gradcube_hub_push(hub, key, buffer.data(), 0.5, &request), GRADCUBE_EINVAL);
    EXPECT_EQ(gradcube_hub_init(hub, key, buffer.data(), &request), GRADCUBE_EINVAL);
    EXPECT_EQ(gradcube_hub_pull(hub, key, buffer.data()), GRADCUBE_EINVAL);
    EXPECT_EQ(gradcube_hub_weights(hub, key), nullptr);
  }
  EXPECT_EQ(gradcube_hub_push(hub, 0, nullptr, 0.5, &request), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_init(hub, 0, nullptr, &request), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_push_pull(hub, 0, buffer.data(), nullptr, 0.5, &request), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, nullptr), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_push(hub, 0, buffer.data(), 0.5, nullptr), GRADCUBE_EINVAL);
  // No key is taken by a push that was refused.
  init(session, hub, 0);
  wait(session, push(session, hub, 0, buffer.data()));
}

TEST_F(HubTest, RefusesLearningRatesThatAreNone) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> gradients(100);
  std::uint64_t request = 0;
  init(session, hub, 0);
  for (const double rate : {std::nan(""), std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(), -0.5, -2.0}) {
    EXPECT_EQ(gradcube_hub_push(hub, 0, gradients.data(), rate, &request), GRADCUBE_EINVAL);
  }
  for (const double rate : {0.0, 1e300, GRADCUBE_HUB_RATE}) {
    wait(session, push(session, hub, 0, gradients.data(), rate));
  }
}

TEST_F(HubTest, ThatIsNoneIsRefusedOrNothingToFree) {
  std::vector<float> buffer(100);
  std::uint64_t request = 0;
  EXPECT_EQ(gradcube_hub_free(nullptr, kLong), GRADCUBE_OK);
  EXPECT_EQ(gradcube_hub_push(nullptr, 0, buffer.data(), 0.5, &request), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_pull(nullptr, 0, buffer.data()), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_weights(nullptr, 0), nullptr);
}

TEST_F(HubTest, EndsPushesWithTheReasonOfADaemonThatDies) {
  gradcube_session* session = open("unpushed");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  const std::vector<float> gradients(100, 1);
  const std::uint64_t request = push_first(session, hub, 0);
  daemon_.kill();
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ENODAEMON);
  std::uint64_t other = 0;
  EXPECT_EQ(gradcube_hub_push(hub, 1, gradients.data(), 0.5, &other), GRADCUBE_ENODAEMON);
  EXPECT_EQ(free(hub), GRADCUBE_ENODAEMON) << "and it is freed";
}

}  // namespace
}  // namespace gradcube::trainer
