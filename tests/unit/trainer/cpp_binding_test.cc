#include <optional>

#include "tests/unit/trainer/session_fixture.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

class CppFace : public SessionTest {};

TEST_F(CppFace, AllReducesBuffersAndForeignMemory) {
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

TEST_F(CppFace, ErrorsAreExceptionsWithCodeAndMessage) {
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

TEST_F(CppFace, ABufferMayOutliveItsSessionWhichLeavesAtOnce) {
  std::optional<Buffer<float>> buffer;
  {
    gradcube::Session session("job", socket_);
    buffer.emplace(session.buffer<float>(1000));
  }
  EXPECT_TRUE(eventually([&] { return daemon_.orderly_leaves() == 1; }));
  (*buffer)[999] = 5;
  EXPECT_EQ(buffer->span().back(), 5);
}

}  // namespace
}  // namespace gradcube::trainer
