#include "dataplane/engine/event_queue.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <new>
#include <poll.h>
#include <stdexcept>
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
  std::vector<std::uint32_t> taken;
  const auto take = [&] {
    queue.take([&](const EngineEvent& each) { taken.push_back(each.job); });
  };
  take();
  ASSERT_EQ(taken.size(), reported);
  for (unsigned i = 0; i < reported; ++i) EXPECT_EQ(taken[i], i);
  EXPECT_FALSE(readable());
  take();
  EXPECT_EQ(taken.size(), reported) << "each once";
  EXPECT_TRUE(queue.report(event)) << "there is room again";
}

TEST(EventQueue, KeepsWhatThereIsNoMemoryToHandleAndWhatIsBehindAFailure) {
  EventQueue queue;
  EngineEvent event;
  for (event.job = 0; event.job < 4; ++event.job) EXPECT_TRUE(queue.report(event));
  std::vector<std::uint32_t> handled;
  bool any_memory = false;
  const auto take = [&] {
    queue.take([&](const EngineEvent& each) {
      if (each.job == 1 && !any_memory) throw std::bad_alloc();
      if (each.job == 2) throw std::runtime_error("not such an event");
      handled.push_back(each.job);
    });
  };
  EXPECT_THROW(take(), std::bad_alloc);
  EXPECT_THROW(take(), std::bad_alloc);
  EXPECT_EQ(handled, (std::vector<std::uint32_t>{0}));
  any_memory = true;
  EXPECT_THROW(take(), std::runtime_error);
  EXPECT_EQ(handled, (std::vector<std::uint32_t>{0, 1}));
  take();
  EXPECT_EQ(handled, (std::vector<std::uint32_t>{0, 1, 3}));
}

}  // namespace
}  // namespace gradcube::dataplane
