// Sessions when things go wrong: at the door, in a collective, and with the daemon itself.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "control/jobs/job_actions.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/trainer/session_fixture.h"
#include "trainer/shared_layout.h"
#include "trainer/src/session/patience.h"

namespace gradcube::trainer {
namespace {

class FailureTest : public SessionTest {
 protected:
  std::pair<int, std::string> refusal(const char* job) {
    gradcube_session* session = reinterpret_cast<gradcube_session*>(this);
    const int code = gradcube_open(socket_.c_str(), job, nullptr, &session);
    EXPECT_EQ(session, nullptr);
    return {code, gradcube_last_error(nullptr)};
  }

  // Waits for a request that must fail, and returns its code.
  int failed(gradcube_session* session, std::uint64_t request) {
    return gradcube_wait(session, request, kLong);
  }
};

TEST_F(FailureTest, WithoutADaemonTheMessageNamesThePathAndTheCommand) {
  gradcube_session* session = nullptr;
  const std::string path = directory_ / "server-0-0.sock";
  EXPECT_EQ(gradcube_open(path.c_str(), "job", nullptr, &session), GRADCUBE_ENODAEMON);
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(std::string(gradcube_last_error(nullptr)),
            "no daemon answers at " + path + ": start a cluster with `gradcube up`");
}

TEST_F(FailureTest, AStaleSocketIsNoDaemon) {
  daemon_.kill();
  EXPECT_EQ(refusal("job").first, GRADCUBE_ENODAEMON);
}

TEST_F(FailureTest, APathThatNoSocketCanHaveIsRefused) {
  gradcube_session* session = nullptr;
  EXPECT_EQ(gradcube_open(std::string(200, 'x').c_str(), "job", nullptr, &session),
            GRADCUBE_EINVAL);
}

TEST_F(FailureTest, BadJobNamesAreRefusedBeforeTheDaemonHearsThem) {
  for (const std::string& job : {std::string(), std::string("a b"), std::string("a/b"),
                                 std::string("\xc3\xa4"), std::string(64, 'x')}) {
    EXPECT_EQ(refusal(job.c_str()).first, GRADCUBE_EJOB) << job;
  }
  const std::string message = refusal("\x1b[31m\n").second;
  EXPECT_EQ(message.find("invalid job name '\\x1b[31m\\x0a': expected"), 0U) << message;
  EXPECT_EQ(refusal(nullptr).first, GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_open(socket_.c_str(), "job", nullptr, nullptr), GRADCUBE_EINVAL);
}

TEST_F(FailureTest, ARefusalIsTheDaemonsOwnCodeAndMessage) {
  EXPECT_EQ(refusal("refuse"), std::pair(int{GRADCUBE_EJOB}, std::string(kRefusal)));
}

TEST_F(FailureTest, ARefusalIsReadEvenWhenTheDaemonHasResetTheConnection) {
  daemon_.turn_away();
  for (int turn = 0; turn < 100; ++turn) {
    ASSERT_EQ(refusal("job"), std::pair(int{GRADCUBE_EJOB}, std::string(kRefusal)));
  }
}

TEST_F(FailureTest, AFileThatIsNoSocketIsCalledThat) {
  gradcube_session* session = nullptr;
  EXPECT_EQ(gradcube_open((directory_ / "").c_str(), "job", nullptr, &session), GRADCUBE_ENODAEMON);
  EXPECT_NE(std::strstr(gradcube_last_error(nullptr), "is not a socket"), nullptr)
      << gradcube_last_error(nullptr);
}

TEST_F(FailureTest, AnAnswerThatIsNoWelcomeIsAProtocolError) {
  for (const char* job : {"garbage", "version", "unsealed"}) {
    const auto [code, message] = refusal(job);
    EXPECT_EQ(code, GRADCUBE_EPROTOCOL) << job;
    EXPECT_NE(message.find("the library that came with the daemon"), std::string::npos) << message;
  }
}

const std::string kOwnVersion =
    "this library has layout version " + std::to_string(shared::kLayoutVersion);

TEST_F(FailureTest, ADaemonOfAnotherLayoutVersionIsToldApartByBothNumbers) {
  const auto [code, message] = refusal("version");
  EXPECT_EQ(code, GRADCUBE_EPROTOCOL);
  EXPECT_NE(message.find("layout version " + std::to_string(shared::kLayoutVersion + 1) + ", and " +
                         kOwnVersion),
            std::string::npos)
      << message;
}

TEST_F(FailureTest, TheRefusalOfADaemonOfAnotherVersionNamesTheLibrarysToo) {
  const auto [code, message] = refusal("older");
  EXPECT_EQ(code, GRADCUBE_EPROTOCOL);
  EXPECT_NE(message.find(kOtherVersion), std::string::npos) << message;
  EXPECT_NE(message.find(kOwnVersion), std::string::npos) << message;
}

TEST_F(FailureTest, ADaemonThatHangsUpAtTheHelloPerhapsHasAnotherVersion) {
  const auto [code, message] = refusal("deaf");
  EXPECT_EQ(code, GRADCUBE_EPROTOCOL);
  EXPECT_NE(message.find(kOwnVersion + ", and the daemon perhaps version 1"), std::string::npos)
      << message;
}

TEST_F(FailureTest, AHeapSizeThatIsNoneIsRefused) {
  const Environment heap("GRADCUBE_HEAP", "lots");
  EXPECT_EQ(refusal("job").first, GRADCUBE_EINVAL);
}

TEST_F(FailureTest, ATimeoutBringsTheDaemonsReportAndTheRequestGoesOn) {
  gradcube_session* session = open("hold");
  float* buffer = floats(session, 100);
  const std::uint64_t request = start(session, buffer, 100);
  EXPECT_EQ(gradcube_wait(session, request, 10), GRADCUBE_ETIMEDOUT);
  EXPECT_EQ(gradcube_last_error(session), std::string("not done after 10 ms: ") + kReport + "1");
  EXPECT_TRUE(eventually([&] { return daemon_.inquiries() == 1; }));
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[0], 9);
}

TEST_F(FailureTest, ALaterTimeoutBringsTheDaemonsReportOfThatTime) {
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 100), 100);
  const std::string said = std::string("not done after 10 ms: ") + kReport + "1";
  EXPECT_EQ(gradcube_wait(session, request, 10), GRADCUBE_ETIMEDOUT);
  EXPECT_EQ(gradcube_last_error(session), said);
  EXPECT_EQ(gradcube_wait(session, request, 10), GRADCUBE_ETIMEDOUT);
  EXPECT_EQ(gradcube_last_error(session), said + kAgain);
}

TEST_F(FailureTest, ATimeoutAsksForTheCollectiveByItsPlaceInItsLane) {
  const gradcube_lane lanes[2] = {};
  gradcube_options options = GRADCUBE_OPTIONS_INIT;
  options.lanes = lanes;
  options.lane_count = 2;
  gradcube_session* session = open("hold", &options);
  gradcube_collective barrier = GRADCUBE_COLLECTIVE_INIT;
  barrier.kind = GRADCUBE_BARRIER;
  std::uint64_t request = 0;
  for (const unsigned lane : {0U, 0U, 1U, 0U, 1U}) {
    barrier.lane = lane;
    ASSERT_EQ(gradcube_submit(session, &barrier, &request), GRADCUBE_OK);
  }
  EXPECT_EQ(gradcube_wait(session, request, 5), GRADCUBE_ETIMEDOUT);
  ASSERT_TRUE(eventually([&] { return daemon_.inquiries() == 1; }));
  const shared::Inquiry inquiry = daemon_.heard().inquiry;
  EXPECT_EQ(inquiry.request, 5U);
  EXPECT_EQ(inquiry.lane, 1U);
  EXPECT_EQ(inquiry.number, 2U);
}

TEST_F(FailureTest, ATimeoutNamesTheTimeThatSeveralCallsWaitedTogether) {
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 100), 100);
  int done = 0;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(gradcube_poll(session, request, 30, &done), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, 0), GRADCUBE_ETIMEDOUT);
  int waited = 0;
  ASSERT_EQ(std::sscanf(gradcube_last_error(session), "not done after %d ms: ", &waited), 1)
      << gradcube_last_error(session);
  EXPECT_GE(waited, 60);
  // The next wait is counted anew.
  EXPECT_EQ(gradcube_wait(session, request, 0), GRADCUBE_ETIMEDOUT);
  ASSERT_EQ(std::sscanf(gradcube_last_error(session), "not done after %d ms: ", &waited), 1);
  EXPECT_LT(waited, 60);
}

TEST_F(FailureTest, ANegativeTimeoutMeansNoLimit) {
  gradcube_session* session = open("hold");
  for (const int timeout : {-1, -5, std::numeric_limits<int>::min()}) {
    const std::uint64_t request = start(session, floats(session, 1), 1);
    std::thread releaser([this] {
      ::usleep(50'000);
      daemon_.release();
    });
    EXPECT_EQ(gradcube_wait(session, request, timeout), GRADCUBE_OK) << timeout;
    releaser.join();
  }
}

TEST_F(FailureTest, ATimeoutWaitsLongerForTheDaemonsReportThanThatTakes) {
  // It may be put off for as long as all members are then asked.
  EXPECT_GT(std::chrono::milliseconds(kInquiryMilliseconds), 2 * control::JobTiming{}.answer);
}

TEST_F(FailureTest, ATimeoutWithoutAReportSaysThat) {
  gradcube_session* session = open("silent");
  const std::uint64_t request = start(session, floats(session, 1), 1);
  EXPECT_EQ(gradcube_wait(session, request, 10), GRADCUBE_ETIMEDOUT);
  EXPECT_TRUE(says(session, "did not say why"));
}

TEST_F(FailureTest, AFailedCollectiveBringsTheNoticeAboutIt) {
  gradcube_session* session = open("fail");
  std::vector<float> foreign(10, 1);
  const std::uint64_t first = start(session, foreign.data(), 10);
  const std::uint64_t second = start(session, floats(session, 10), 10);
  EXPECT_EQ(failed(session, second), GRADCUBE_EPEER);
  EXPECT_EQ(gradcube_last_error(session), std::string(kFailure) + "2");
  int done = 0;
  EXPECT_EQ(gradcube_test(session, first, &done), GRADCUBE_EPEER);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(gradcube_last_error(session), std::string(kFailure) + "1");
}

TEST_F(FailureTest, AFailureWithoutANoticeStillHasAMessage) {
  for (const char* job : {"unexplained", "vanished"}) {
    gradcube_session* session = open(job);
    const std::uint64_t request = start(session, floats(session, 10), 10);
    EXPECT_EQ(failed(session, request), GRADCUBE_EPEER);
    EXPECT_TRUE(says(session, "another trainer of the job died, left or aborted"));
    EXPECT_TRUE(says(session, "[2,1]"));
  }
}

TEST_F(FailureTest, EachOfManyFailuresBringsTheNoticeThatItsCompletionNames) {
  constexpr unsigned kMany = 50;
  gradcube_session* session = open("fail");
  std::vector<std::uint64_t> requests;
  for (unsigned i = 0; i < kMany; ++i) {
    requests.push_back(start(session, floats(session, 10), 10));
  }
  for (const std::uint64_t request : requests) {
    EXPECT_EQ(failed(session, request), GRADCUBE_EPEER);
    EXPECT_EQ(gradcube_last_error(session), kFailure + std::to_string(request));
  }
}

TEST_F(FailureTest, AnotherRequestsFailureEndsNoCallWhereThereIsNoMemoryForItsWords) {
  gradcube_session* session = open("uneven");
  float* buffer = floats(session, 10);
  const std::uint64_t goes_on = start(session, buffer, 10);
  std::uint64_t fails = 0;
  ASSERT_EQ(gradcube_barrier(session, &fails), GRADCUBE_OK);
  const auto& header = *reinterpret_cast<const shared::RegionHeader*>(
      reinterpret_cast<const std::byte*>(buffer) - shared::kHeapOffset);
  ASSERT_TRUE(eventually([&] { return header.completion_tail == 1; }));
  int waited = 0;
  int polled = 0;
  int done = 7;
  {
    const NoMemory none;
    waited = gradcube_wait(session, goes_on, 10);
    polled = gradcube_poll(session, goes_on, 10, &done);
  }
  EXPECT_EQ(waited, GRADCUBE_ETIMEDOUT);
  EXPECT_EQ(polled, GRADCUBE_OK);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(failed(session, fails), GRADCUBE_EPEER);
  EXPECT_STREQ(gradcube_last_error(session), gradcube_strerror(GRADCUBE_EPEER));
  daemon_.release();
  EXPECT_EQ(gradcube_wait(session, goes_on, kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[0], 9);
}

TEST_F(FailureTest, ASessionIsLostByItsCodeWhereThereIsNoMemoryForTheReason) {
  for (const auto& [job, code] :
       {std::pair("scold", GRADCUBE_EPROTOCOL), std::pair("die", GRADCUBE_ENODAEMON),
        std::pair("scribble", GRADCUBE_EPROTOCOL)}) {
    gradcube_session* session = open(job);
    const std::uint64_t request = start(session, floats(session, 10), 10);
    int ended = 0;
    {
      const NoMemory none;
      ended = failed(session, request);
    }
    EXPECT_EQ(ended, code) << job;
  }
}

TEST_F(FailureTest, ADaemonThatDiesEndsEveryWait) {
  gradcube_session* session = open("hold");
  const std::uint64_t first = start(session, floats(session, 10), 10);
  const std::uint64_t second = start(session, floats(session, 10), 10);
  std::thread killer([this] {
    ::usleep(50'000);
    daemon_.kill();
  });
  EXPECT_EQ(failed(session, first), GRADCUBE_ENODAEMON);
  EXPECT_TRUE(says(session, socket_.c_str()));
  killer.join();
  EXPECT_EQ(failed(session, second), GRADCUBE_ENODAEMON);
  std::uint64_t refused = 0;
  EXPECT_EQ(gradcube_allreduce(session, nullptr, 0, GRADCUBE_FLOAT32, GRADCUBE_SUM, &refused),
            GRADCUBE_ENODAEMON);
  EXPECT_TRUE(says(session, "gradcube up"));
}

TEST_F(FailureTest, ADaemonThatDiesIsFoundByTestingAlone) {
  gradcube_session* session = open("hold");
  const std::uint64_t request = start(session, floats(session, 10), 10);
  daemon_.kill();
  int done = 0;
  EXPECT_EQ(gradcube_test(session, request, &done), GRADCUBE_ENODAEMON);
  EXPECT_EQ(done, 1);
}

TEST_F(FailureTest, AConnectionThatClosesAtASubmissionIsADeadDaemon) {
  gradcube_session* session = open("die");
  EXPECT_EQ(failed(session, start(session, floats(session, 10), 10)), GRADCUBE_ENODAEMON);
}

TEST_F(FailureTest, AClosingNoticeGivesTheReason) {
  gradcube_session* session = open("scold");
  EXPECT_EQ(failed(session, start(session, floats(session, 10), 10)), GRADCUBE_EPROTOCOL);
  EXPECT_STREQ(gradcube_last_error(session), kClosing);
}

TEST_F(FailureTest, NonsenseInTheCompletionRingEndsTheSession) {
  gradcube_session* session = open("scribble");
  EXPECT_EQ(failed(session, start(session, floats(session, 10), 10)), GRADCUBE_EPROTOCOL);
  EXPECT_TRUE(says(session, "invalid entry to the completion ring"));
}

TEST_F(FailureTest, ACollectiveThatEndsTwiceEndsTheSession) {
  gradcube_session* session = open("twice");
  const std::uint64_t first = start(session, floats(session, 10), 10);
  EXPECT_EQ(gradcube_wait(session, first, kLong), GRADCUBE_OK);
  std::uint64_t request = 0;
  EXPECT_TRUE(eventually([&] {
    return gradcube_barrier(session, &request) != GRADCUBE_OK ||
           gradcube_wait(session, request, kLong) != GRADCUBE_OK;
  }));
  EXPECT_EQ(gradcube_last_code(session), GRADCUBE_EPROTOCOL);
  EXPECT_TRUE(says(session, "invalid entry to the completion ring"));
}

// A socket with the usual buffer has room for some 90 messages.
TEST_F(FailureTest, EachOfAsManyFailuresAsTheSocketHoldsIsExplained) {
  constexpr int kMany = 80;
  gradcube_session* session = open("fail");
  float* buffer = floats(session, 16 * kMany);
  std::vector<std::uint64_t> requests;
  for (int i = 0; i < kMany; ++i) requests.push_back(start(session, buffer + 16 * i, 16));
  const auto& header = *reinterpret_cast<const shared::RegionHeader*>(
      reinterpret_cast<const std::byte*>(buffer) - shared::kHeapOffset);
  ASSERT_TRUE(eventually([&] { return header.completion_tail == kMany; }));
  for (const std::uint64_t request : requests) {
    EXPECT_EQ(failed(session, request), GRADCUBE_EPEER);
    EXPECT_EQ(gradcube_last_error(session), kFailure + std::to_string(request));
  }
}

TEST_F(FailureTest, EveryCodeHasItsName) {
  for (int code = GRADCUBE_ECORRUPT; code <= GRADCUBE_OK; ++code) {
    EXPECT_STRNE(gradcube_strerror(code), gradcube_strerror(1)) << code;
  }
}

}  // namespace
}  // namespace gradcube::trainer
