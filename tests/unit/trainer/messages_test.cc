// Messages between trainers through the C ABI and the C++ binding: what is refused, and what comes
// back.

#include <cstring>
#include <numeric>
#include <poll.h>
#include <string>

#include "tests/unit/trainer/session_fixture.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

class Messages : public SessionTest {
 protected:
  gradcube_session* session_ = open("job");

  std::uint64_t receive(void* buffer, std::size_t bytes, std::uint64_t tag, std::size_t* received) {
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_recv(session_, buffer, bytes, 1, tag, received, &request), GRADCUBE_OK)
        << gradcube_last_error(session_);
    return request;
  }
};

TEST_F(Messages, TellTheirLengthWhenTheirEndIsReported) {
  std::size_t received = 77;
  std::vector<std::uint8_t> foreign(10, 1);
  ASSERT_EQ(gradcube_wait(session_, receive(foreign.data(), 10, 4, &received), kLong), GRADCUBE_OK);
  EXPECT_EQ(received, 4u);
  EXPECT_EQ(foreign, (std::vector<std::uint8_t>{kReceived, kReceived, kReceived, kReceived, 1, 1, 1,
                                                1, 1, 1}))
      << "what is behind the message stays";
  auto* shared = elements<std::uint8_t>(session_, 10, 1);
  ASSERT_EQ(gradcube_wait(session_, receive(shared, 10, 10, nullptr), kLong), GRADCUBE_OK);
  EXPECT_EQ(shared[9], kReceived);
  ASSERT_EQ(gradcube_wait(session_, receive(nullptr, 0, 0, &received), kLong), GRADCUBE_OK);
  EXPECT_EQ(received, 0u);
}

TEST_F(Messages, MayShareTheBufferOfTheirSends) {
  gradcube_session* session = open("hold");
  auto* shared = elements<std::uint8_t>(session, 100, 1);
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_send(session, shared, 100, 1, 0, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_send(session, shared, 50, 2, 0, &request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_recv(session, shared + 64, 10, 1, 0, nullptr, &request), GRADCUBE_EINVAL);
  EXPECT_NE(std::string(gradcube_last_error(session)).find("overlaps"), std::string::npos);
  EXPECT_EQ(gradcube_allreduce(session, shared, 10, GRADCUBE_UINT8, GRADCUBE_SUM, &request),
            GRADCUBE_EINVAL);
}

// A tag is any number, and its bits are no lane.
TEST_F(Messages, ThatAreLateAreAskedAboutInTheSameWordsWhateverTheirTag) {
  gradcube_session* session = open("hold");
  for (const std::uint64_t tag : {std::uint64_t{1}, std::uint64_t{1} << 48, UINT64_MAX}) {
    std::uint64_t request = 0;
    ASSERT_EQ(gradcube_recv(session, nullptr, 0, 1, tag, nullptr, &request), GRADCUBE_OK);
    ASSERT_EQ(gradcube_wait(session, request, 0), GRADCUBE_ETIMEDOUT);
    ASSERT_TRUE(eventually([&] { return daemon_.heard().inquiry.request == request; }));
    EXPECT_EQ(daemon_.heard().inquiry.lane, 0U) << tag;
    EXPECT_EQ(daemon_.heard().inquiry.number, 0U) << tag;
  }
}

TEST_F(Messages, ThatAreTooLongSayWhose) {
  std::size_t received = 77;
  std::uint64_t request = receive(nullptr, 0, kTooLong, &received);
  ASSERT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_EMISMATCH);
  EXPECT_EQ(received, 0u);
  EXPECT_EQ(std::string(gradcube_last_error(session_)),
            "the receive of up to 0 bytes from rank 1 with tag " + std::to_string(kTooLong) +
                " in job \"job\" failed: the message has 1 bytes; nothing was transferred");
  ASSERT_EQ(gradcube_send(session_, "text", 4, 2, kTooLong, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_EMISMATCH);
  EXPECT_EQ(std::string(gradcube_last_error(session_)),
            "the send of 4 bytes to rank 2 with tag " + std::to_string(kTooLong) +
                " in job \"job\" failed: it is longer than the buffer of its receive; nothing was "
                "transferred");
}

TEST_F(Messages, OfAnotherTypeNameBoth) {
  gradcube_message message = GRADCUBE_MESSAGE_INIT;
  message.peer = 3;
  message.tag = kOtherType;
  message.dtype = GRADCUBE_FLOAT8_E5M2;
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_submit_message(session_, &message, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_EMISMATCH);
  EXPECT_EQ(std::string(gradcube_last_error(session_)),
            "the send of 0 bytes to rank 3 with tag " + std::to_string(kOtherType) +
                " in job \"job\" failed: rank 3 receives int32, and this trainer sends "
                "float8_e5m2; nothing was transferred");
  message.direction = GRADCUBE_RECEIVE;
  ASSERT_EQ(gradcube_submit_message(session_, &message, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_EMISMATCH);
  EXPECT_NE(std::string(gradcube_last_error(session_))
                .find("rank 3 sends int32, and this trainer receives float8_e5m2"),
            std::string::npos);
}

TEST_F(Messages, ThatMeetNothingCanBeWithdrawn) {
  gradcube_session* session = open("hold");
  auto* shared = elements<std::uint8_t>(session, 100, 1);
  std::size_t received = 77;
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_recv(session, shared, 100, 1, 5, &received, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_cancel(session, request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_cancel(session, request), GRADCUBE_OK) << "a second call changes nothing";
  ASSERT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ECANCELED);
  EXPECT_EQ(std::string(gradcube_last_error(session)),
            "the receive of up to 100 bytes from rank 1 with tag 5 in job \"hold\" was withdrawn "
            "before it met the other trainer's: it has taken nothing");
  EXPECT_EQ(received, 0u);
  EXPECT_EQ(shared[0], 1);
  EXPECT_EQ(gradcube_cancel(session, request), GRADCUBE_EINVAL) << "its end was reported";
  // The buffer is the trainer's again.
  ASSERT_EQ(gradcube_send(session, shared, 100, 1, 5, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_cancel(session, request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ECANCELED);
}

TEST_F(Messages, ThatHaveMetAreNotWithdrawn) {
  std::uint8_t buffer[10] = {};
  const std::uint64_t request = receive(buffer, 10, 10, nullptr);
  pollfd ended{gradcube_event_fd(session_), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, kLong), 1);
  EXPECT_EQ(gradcube_cancel(session_, request), GRADCUBE_OK);
  EXPECT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_OK);
  EXPECT_EQ(buffer[9], kReceived);
  std::uint64_t barrier = 0;
  ASSERT_EQ(gradcube_barrier(session_, &barrier), GRADCUBE_OK);
  EXPECT_EQ(gradcube_cancel(session_, barrier), GRADCUBE_EINVAL);
  EXPECT_NE(std::string(gradcube_last_error(session_)).find("is no message"), std::string::npos);
  EXPECT_EQ(gradcube_wait(session_, barrier, kLong), GRADCUBE_OK);
  EXPECT_EQ(gradcube_cancel(session_, 12345), GRADCUBE_EINVAL);
}

// As many withdrawals as messages fit, whatever the daemon has read.
TEST_F(Messages, CanAllBeWithdrawnAtOnce) {
  gradcube_session* session = open("hold");
  for (int round = 0; round < 3; ++round) {
    std::vector<std::uint64_t> requests(shared::kRingEntries);
    for (std::uint64_t& request : requests) {
      ASSERT_EQ(gradcube_recv(session, nullptr, 0, 1, 0, nullptr, &request), GRADCUBE_OK)
          << gradcube_last_error(session);
    }
    for (const std::uint64_t request : requests) {
      while (gradcube_cancel(session, request) == GRADCUBE_EAGAIN) continue;
    }
    for (const std::uint64_t request : requests) {
      ASSERT_EQ(gradcube_wait(session, request, kLong), GRADCUBE_ECANCELED);
    }
  }
}

TEST_F(Messages, ToServersThatAreTooFarSaySo) {
  std::uint64_t request = 0;
  ASSERT_EQ(gradcube_send(session_, "text", 4, 2, kTooFar, &request), GRADCUBE_OK);
  ASSERT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_EINVAL);
  EXPECT_EQ(std::string(gradcube_last_error(session_)),
            "the send of 4 bytes to rank 2 with tag " + std::to_string(kTooFar) +
                " in job \"job\" failed: the two servers are farther apart than the 8 hops that a "
                "frame may take; let a trainer between them pass it on");
}

TEST_F(Messages, LongerThanTheirBufferAreNotBelieved) {
  std::uint8_t buffer[10] = {};
  const std::uint64_t request = receive(buffer, 10, kLie, nullptr);
  EXPECT_EQ(gradcube_wait(session_, request, kLong), GRADCUBE_EPROTOCOL);
}

TEST_F(Messages, AreRefusedWhereTheyMakeNoSense) {
  std::uint8_t buffer[10] = {};
  const auto refusal_of = [&](const auto& change) {
    gradcube_message message = GRADCUBE_MESSAGE_INIT;
    message.buffer = buffer;
    message.bytes = 10;
    change(message);
    std::uint64_t request = 0;
    EXPECT_EQ(gradcube_submit_message(session_, &message, &request), GRADCUBE_EINVAL);
    return std::string(gradcube_last_error(session_));
  };
  EXPECT_EQ(refusal_of([](auto& m) { m.peer = FakeDaemon::kSize; }),
            "invalid rank 9 of the other trainer: expected 0 to 8");
  EXPECT_EQ(refusal_of([](auto& m) { m.dtype = 9; }).find("invalid dtype 9"), 0u);
  EXPECT_EQ(refusal_of([](auto& m) { m.direction = 2; }),
            "invalid direction 2: expected GRADCUBE_SEND or GRADCUBE_RECEIVE");
  EXPECT_EQ(refusal_of([](auto& m) { m.buffer = nullptr; }),
            "the buffer is NULL but the message has 10 bytes");
  EXPECT_NE(refusal_of([](auto& m) { m.bytes = SIZE_MAX; }).find("GRADCUBE_HEAP"),
            std::string::npos);
  EXPECT_NE(refusal_of([](auto& m) { m.size = 3; }).find("invalid size 3 of a gradcube_message"),
            std::string::npos);
  std::uint64_t request = 0;
  EXPECT_EQ(gradcube_submit_message(session_, nullptr, &request), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_send(session_, buffer, 10, 0, 0, nullptr), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_recv(nullptr, buffer, 10, 0, 0, nullptr, &request), GRADCUBE_EINVAL);
}

TEST_F(Messages, HaveCallsInCpp) {
  gradcube::Session session("job", socket_);
  auto buffer = session.buffer<float>(4);
  const std::vector<float> constant(4, 2);
  auto first = session.send(std::span(constant), 1);
  auto second = session.send(buffer.span(), 2, 5, 3);
  first.wait();
  second.wait(std::chrono::minutes(1));
  EXPECT_TRUE(eventually([&] { return daemon_.heard().submission.message.paths == 3; }));
  EXPECT_EQ(daemon_.heard().submission.dtype, GRADCUBE_FLOAT32);
  EXPECT_EQ(second.received(), 0u);
  auto third = session.receive(buffer.span(), 1, 12);
  third.wait();
  EXPECT_EQ(third.received(), 12u);
  gradcube::Session holding("hold", socket_);
  auto held = holding.buffer<float>(4);
  auto fourth = holding.receive(held.span(), 1);
  fourth.cancel();
  try {
    fourth.wait();
    ADD_FAILURE() << "it has ended well";
  } catch (const gradcube::Error& error) {
    EXPECT_EQ(error.code(), GRADCUBE_ECANCELED);
  }
}

}  // namespace
}  // namespace gradcube::trainer
