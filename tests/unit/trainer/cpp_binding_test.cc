#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "tests/unit/trainer/session_fixture.h"

#include "gradcube/gradcube.hpp"
#include "gradcube/gradcube_hub.hpp"

namespace gradcube::trainer {
namespace {

class CppBinding : public SessionTest {};

TEST_F(CppBinding, AllReducesBuffersAndForeignMemory) {
  gradcube::Session session("job", socket_);
  EXPECT_EQ(session.rank(), FakeDaemon::kRank);
  EXPECT_EQ(session.size(), FakeDaemon::kSize);
  EXPECT_EQ(session.server(), FakeDaemon::kServer);
  auto buffer = session.buffer<double>(100);
  std::fill(buffer.begin(), buffer.end(), 2.0);
  std::vector<std::int32_t> foreign(10, 3);
  auto first = session.all_reduce(buffer.span(), Op::sum);
  auto second = session.all_reduce(std::span(foreign), Op::sum);
  first.wait();
  second.wait(std::chrono::minutes(1));
  EXPECT_EQ(buffer[99], 18.0);
  EXPECT_EQ(foreign[9], 27);
  session.barrier();
}

TEST_F(CppBinding, ErrorsAreExceptionsWithCodeAndMessage) {
  try {
    gradcube::Session session("refuse", socket_);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GRADCUBE_EJOB);
    EXPECT_STREQ(error.what(), kRefusal);
  }
  gradcube::Session session("hold", socket_);
  auto buffer = session.buffer<float>(10);
  auto request = session.all_reduce(buffer.span());
  EXPECT_FALSE(request.test());
  try {
    request.wait(std::chrono::milliseconds(5));
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GRADCUBE_ETIMEDOUT);
    EXPECT_TRUE(std::string(error.what()).ends_with(kReport + std::string("1"))) << error.what();
  }
  EXPECT_THROW(session.buffer<float>(SIZE_MAX), Error);
  EXPECT_THROW(session.buffer<float>(1 << 30), Error);
}

TEST_F(CppBinding, HasACallForEveryKind) {
  gradcube::Session session("job", socket_);
  auto bytes = session.buffer<std::byte>(90);
  std::fill(bytes.begin(), bytes.end(), std::byte{5});
  session.all_gather(bytes.span()).wait();
  EXPECT_EQ(bytes[0], std::byte{5});
  session.broadcast(bytes.span(), 0).wait();
  EXPECT_EQ(bytes[89], std::byte{kBroadcast});
  std::vector<std::int8_t> numbers(18, 3);
  session.reduce_scatter(std::span(numbers), Op::sum).wait();
  EXPECT_EQ(numbers[14], 27);
  EXPECT_EQ(numbers[0], 3);
  std::vector<std::uint8_t> others(18, 3);
  session.reduce(std::span(others), FakeDaemon::kRank, Op::sum).wait();
  EXPECT_EQ(others[0], 27);
  EXPECT_THROW(session.all_reduce(std::span(others), Op::average).wait(), Error);
  try {
    session.reduce_scatter(std::span(others).first(17)).wait();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GRADCUBE_EINVAL);
    EXPECT_NE(std::string(error.what()).find("17 elements"), std::string::npos);
  }
  gradcube_collective any = GRADCUBE_COLLECTIVE_INIT;
  any.kind = GRADCUBE_BARRIER;
  session.submit(any).wait();
}

TEST_F(CppBinding, AsksForWhatItsOptionsSay) {
  Options options;
  options.lanes = {{"bml", 1}, {"ring", 2}};
  options.weight = 3;
  options.rank = 4;
  options.members = {7, 5};
  gradcube::Session session("job", socket_, options);
  const Heard heard = daemon_.heard();
  EXPECT_EQ(heard.hello.lane_count, 2U);
  EXPECT_STREQ(heard.hello.lanes[1].algorithm, "ring");
  EXPECT_EQ(heard.hello.lanes[1].priority, 2);
  EXPECT_EQ(heard.hello.weight, 3U);
  EXPECT_EQ(heard.hello.rank, 4);
  EXPECT_EQ(heard.members, (std::vector<std::uint32_t>{5, 7}));
  session.barrier(1);
  EXPECT_THROW(session.barrier(2), Error);
  const std::vector<float> weights(100, 1.5F);
  session.compare(std::as_bytes(std::span(weights)), 1).wait();
  EXPECT_THROW(static_cast<void>(session.compare({}, 2)), Error);
  options.algorithm = "ring";
  EXPECT_THROW(gradcube::Session("job", socket_, options), Error);
}

TEST_F(CppBinding, AnAbortEndsRequestsAndMakesTheEventDescriptorReadable) {
  gradcube::Session session("hold", socket_);
  auto buffer = session.buffer<float>(10);
  auto request = session.all_reduce(buffer.span());
  EXPECT_GE(session.event_fd(), 0);
  session.abort();
  try {
    request.wait();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GRADCUBE_EABORTED);
  }
}

TEST_F(CppBinding, WeightsOfAHubThatCannotBeShownAreAnError) {
  gradcube::Session session("job", socket_);
  gradcube::Hub hub(session, {{"weight", 10}});
  const std::vector<float> weights(10, 1.5F);
  hub.init(0, std::span(weights)).wait();
  EXPECT_EQ(hub.weights<float>(0).back(), 1.5F);
  session.abort();
  EXPECT_THROW(hub.weights<float>(0), Error);
}

TEST_F(CppBinding, ABufferMayOutliveItsSessionWhichLeavesAtOnce) {
  std::optional<Buffer<float>> buffer;
  {
    gradcube::Session session("job", socket_);
    buffer.emplace(session.buffer<float>(1000));
  }
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  (*buffer)[999] = 5;
  EXPECT_EQ(buffer->span().back(), 5);
}

TEST_F(CppBinding, ASessionThatIsAssignedToLeavesItsJobAtOnce) {
  gradcube::Session session("job", socket_);
  gradcube::Session other("job", socket_);
  session = std::move(other);
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  session.barrier();
}

TEST_F(CppBinding, ANegativeTimeoutMeansNoLimit) {
  gradcube::Session session("hold", socket_);
  auto buffer = session.buffer<float>(10);
  auto request = session.all_reduce(buffer.span());
  std::thread releaser([this] {
    ::usleep(50'000);
    daemon_.release();
  });
  EXPECT_NO_THROW(request.wait(std::chrono::milliseconds(-1)));
  releaser.join();
}

TEST_F(CppBinding, TimeoutsOfEveryKindBecomeMilliseconds) {
  using std::chrono::duration;
  EXPECT_EQ(detail::milliseconds(std::chrono::seconds(0)), 0);
  EXPECT_EQ(detail::milliseconds(std::chrono::microseconds(1)), 1);
  EXPECT_EQ(detail::milliseconds(std::chrono::microseconds(-1)), -1);
  EXPECT_EQ(detail::milliseconds(std::chrono::minutes(1)), 60'000);
  EXPECT_EQ(detail::milliseconds(std::chrono::hours::max()), std::numeric_limits<int>::max());
  EXPECT_EQ(detail::milliseconds(std::chrono::nanoseconds::min()), -1);
  EXPECT_EQ(detail::milliseconds(duration<double>(1e300)), std::numeric_limits<int>::max());
  EXPECT_THROW(detail::milliseconds(duration<double>(std::nan(""))), Error);
}

TEST_F(CppBinding, AClosedSessionSaysSo) {
  gradcube::Session session("job", socket_);
  session.close();
  try {
    session.buffer<float>(1);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), GRADCUBE_EINVAL);
  }
}

}  // namespace
}  // namespace gradcube::trainer
