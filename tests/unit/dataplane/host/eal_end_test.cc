// DPDK ends with its process, so this test has one of its own.

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <rte_interrupts.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include "dataplane/host/eal.h"

namespace gradcube::dataplane {
namespace {

using std::chrono::milliseconds;

void count_again(void* counter) { ++*static_cast<std::atomic<unsigned>*>(counter); }

TEST(EalEnd, LeavesNoThreadThatGoesOnWithWhatWasFreed) {
  EalOptions options;
  options.cores = {usable_cores().front()};
  options.memory_megabytes = 64;
  options.huge_pages = HugePages::never;
  std::optional<Eal> eal(std::in_place, options);
  std::atomic<unsigned> counted{0};
  // A source that is never taken away, and whose descriptor can be read all the time.
  const int event = ::eventfd(1, EFD_CLOEXEC);
  rte_intr_handle* source = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  ASSERT_EQ(rte_intr_fd_set(source, event), 0);
  ASSERT_EQ(rte_intr_type_set(source, RTE_INTR_HANDLE_EXT), 0);
  ASSERT_EQ(rte_intr_callback_register(source, count_again, &counted), 0);
  while (counted < 10) std::this_thread::sleep_for(milliseconds(1));
  eal.reset();
  const unsigned at_end = counted;
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(counted, at_end);
  rte_intr_instance_free(source);
  ::close(event);
}

}  // namespace
}  // namespace gradcube::dataplane
