#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "tests/unit/trainer/session_fixture.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

class CppBinding : public SessionTest {};

TEST_F(CppBinding, AllReducesBuffersAndForeignMemory) {
  gradcube::Session session("job", socket_);
  EXPECT_EQ(session.rank(), FakeDaemon::kRank);
  EXPECT_EQ(session.size(), FakeDaemon::kSize);
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
    EXPECT_TRUE(std::string(error.what()).ends_with(kReport)) << error.what();
  }
  EXPECT_THROW(session.buffer<float>(SIZE_MAX), Error);
  EXPECT_THROW(session.buffer<float>(1 << 30), Error);
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
