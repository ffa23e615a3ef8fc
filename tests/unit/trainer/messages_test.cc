// Messages between trainers through the C ABI and the C++ binding: what is refused, and what comes
// back.

#include <cstring>
#include <numeric>
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
  EXPECT_TRUE(eventually([&] { return daemon_.heard().submission.paths == 3; }));
  EXPECT_EQ(second.received(), 0u);
  auto third = session.receive(buffer.span(), 1, 12);
  third.wait();
  EXPECT_EQ(third.received(), 12u);
}

}  // namespace
}  // namespace gradcube::trainer
