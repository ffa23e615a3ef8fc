// What ThreadSanitizer does not see of DPDK, whose libraries are not instrumented. Only builds with
// -Db_sanitize=thread have this file.
//
// The end of an lcore's function happens before the return of the wait for that lcore. The linker
// sends calls of DPDK's launch and wait here (--wrap, see meson.build), and these tell the
// sanitizer. It sees the launch by itself, because DPDK launches through a pipe.

#include <array>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sanitizer/tsan_interface.h>

namespace {

struct Launch {
  lcore_function_t* function = nullptr;
  void* argument = nullptr;
};

std::array<Launch, RTE_MAX_LCORE> launches;
char ended;  // its address stands for "a function of an lcore has ended"

int run(void* argument) {
  const Launch& launch = *static_cast<const Launch*>(argument);
  const int result = launch.function(launch.argument);
  __tsan_release(&ended);
  return result;
}

}  // namespace

// The names that the linker and the sanitizer's runtime ask for.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_rte_eal_remote_launch(lcore_function_t* function, void* argument, unsigned worker);
int __real_rte_eal_wait_lcore(unsigned worker);
void __real_rte_eal_mp_wait_lcore();

int __wrap_rte_eal_remote_launch(lcore_function_t* function, void* argument, unsigned worker) {
  launches.at(worker) = {function, argument};
  return __real_rte_eal_remote_launch(run, &launches.at(worker), worker);
}

int __wrap_rte_eal_wait_lcore(unsigned worker) {
  const int result = __real_rte_eal_wait_lcore(worker);
  __tsan_acquire(&ended);
  return result;
}

void __wrap_rte_eal_mp_wait_lcore() {
  __real_rte_eal_mp_wait_lcore();
  __tsan_acquire(&ended);
}

// One rule per line, with its reason. They hold in addition to those that TSAN_OPTIONS names.
const char* __tsan_default_suppressions() {
  return
      // DPDK's inline functions with plain loads of indices that the other side stores atomically.
      // Their callers treat the result as a hint; taking and putting use atomic loads.
      "race:^rte_ring_empty$\n"
      "race:^rte_ring_count$\n"
      // The store of the same pair, for reports that have lost the reader's stack.
      "race:^__rte_ring_update_tail$\n";
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
