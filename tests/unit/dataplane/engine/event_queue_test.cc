#include "dataplane/engine/event_queue.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <vector>

namespace gradcube::dataplane {
namespace {

TEST(EventQueue, IsReadableWhileEventsWaitAndRefusesBeyondItsRoom) {
  EventQueue queue;
  const auto readable = [&] {
    pollfd waiting{queue.descriptor(), POLLIN, 0};
    return poll(&waiting, 1, 0) == 1;
  };
  EXPECT_FALSE(readable());
  unsigned reported = 0;
  EngineEvent event;
  while (event.job = reported, queue.report(event)) ++reported;
  EXPECT_GE(reported, 64u);
  EXPECT_TRUE(readable());
  const std::vector<EngineEvent> taken = queue.take();
  ASSERT_EQ(taken.size(), reported);
  for (unsigned i = 0; i < reported; ++i) EXPECT_EQ(taken[i].job, i);
  EXPECT_FALSE(readable());
  EXPECT_TRUE(queue.take().empty());
  EXPECT_TRUE(queue.report(event)) << "there is room again";
}

}  // namespace
}  // namespace gradcube::dataplane
