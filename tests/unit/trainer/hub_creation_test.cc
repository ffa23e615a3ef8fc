// When a session's hub is made, and why it is not.

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/unit/trainer/hub_fixture.h"

namespace gradcube::trainer {
namespace {

TEST_F(HubTest, IsNotMadeOfWeightsOfAnotherLength) {
  gradcube_session* session = open("misfit");
  EXPECT_NE(refusal(session, GRADCUBE_EPROTOCOL).find("another hub than it was asked for"),
            std::string::npos);
  EXPECT_TRUE(eventually([&] { return daemon_.heard().hub_ends == 1; })) << "it is freed";
}

TEST_F(HubTest, IsNotMadeWithoutWeights) {
  gradcube_session* session = open("empty-handed");
  EXPECT_NE(refusal(session, GRADCUBE_ESYSTEM).find("(ulimit -n)"), std::string::npos);
}

TEST_F(HubTest, IsNotMadeForTheReasonThatTheDaemonGives) {
  gradcube_session* session = open("hubless");
  EXPECT_NE(refusal(session, GRADCUBE_ENOMEM).find(kNoHub), std::string::npos);
  EXPECT_NE(refusal(session, GRADCUBE_ENOMEM).find(kNoHub), std::string::npos) << "again";
  ASSERT_TRUE(eventually([&] { return daemon_.heard().wishes.size() == 2; }));
  EXPECT_EQ(daemon_.heard().wishes[0].number, 1U);
  EXPECT_EQ(daemon_.heard().wishes[1].number, 2U);
}

TEST_F(HubTest, IsNotMadeInTwoEpochsOfItsJob) {
  gradcube_session* session = open("divided");
  EXPECT_NE(refusal(session, GRADCUBE_EMISMATCH).find("the job was reset"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return daemon_.heard().hub_ends == 1; })) << "it is freed";
}

TEST_F(HubTest, IsNotTakenForTheOneBeforeWhoseAnswerIsLate) {
  gradcube_session* session = open("late");
  for (int i = 0; i < 3; ++i) {
    gradcube_hub* hub = create(session);
    ASSERT_NE(hub, nullptr);
    EXPECT_EQ(free(hub), GRADCUBE_OK);
  }
}

TEST_F(HubTest, IsWaitedForNoLongerThanItsCallerWants) {
  gradcube_session* session = open("unhubbed");
  gradcube_hub* hub = nullptr;
  EXPECT_EQ(gradcube_hub_create(session, &settings_, 200, &hub), GRADCUBE_ETIMEDOUT);
  EXPECT_EQ(hub, nullptr);
}

TEST_F(HubTest, IsOneAtATime) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  EXPECT_NE(refusal(session, GRADCUBE_EINVAL).find("free it first"), std::string::npos);
  EXPECT_EQ(free(hub), GRADCUBE_OK);
  EXPECT_TRUE(eventually([&] { return daemon_.heard().hub_ends == 1; }));
  hub = create(session);
  ASSERT_NE(hub, nullptr);
  init(session, hub, 0);
  const std::vector<float> gradients(100, 1);
  wait(session, push(session, hub, 0, gradients.data()));
  ASSERT_TRUE(
      eventually([&] { return is_push(daemon_.heard().submission, shared::PushKind::gradients); }));
  EXPECT_EQ(daemon_.heard().submission.push.hub, 2U) << "it is the second one";
}

}  // namespace
}  // namespace gradcube::trainer
