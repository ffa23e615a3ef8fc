// What ThreadSanitizer does not see of DPDK, whose libraries are not instrumented. Only builds with
// -Db_sanitize=thread have this file.
//
// The end of an lcore's function happens before the return of the wait for that lcore. The linker
// sends calls of DPDK's launch and wait here (--wrap, see meson.build), and these tell the
// sanitizer. It sees the launch by itself, because DPDK launches through a pipe.
//
// DPDK's thread for interrupts runs drivers, and of our code only what starts them anew
// (memif_reconnection.h). It shares DPDK's heap with our threads under spinlocks that the sanitizer
// does not see, so from its first moments on its reads and writes are not recorded.

#include <array>
#include <future>
#include <rte_alarm.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sanitizer/tsan_interface.h>

// Exported by the sanitizer's runtime, which has no header for them.
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

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

std::promise<void> interrupts_are_ignored;  // kept when DPDK has started: its setter may be late

// Until the thread ends (interrupt_thread.h).
class Ignoring {
 public:
  Ignoring() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Ignoring() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Ignoring(const Ignoring&) = delete;
  Ignoring& operator=(const Ignoring&) = delete;
};

void ignore_interrupts(void* /*nothing*/) {
  static thread_local const Ignoring ignoring;
  interrupts_are_ignored.set_value();
}

}  // namespace

// The names that the linker and the sanitizer's runtime ask for.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_rte_eal_init(int count, char** arguments);
int __real_rte_eal_remote_launch(lcore_function_t* function, void* argument, unsigned worker);
int __real_rte_eal_wait_lcore(unsigned worker);
void __real_rte_eal_mp_wait_lcore();

// Alarms go off on the thread for interrupts.
int __wrap_rte_eal_init(int count, char** arguments) {
  const int taken = __real_rte_eal_init(count, arguments);
  if (taken >= 0 && rte_eal_alarm_set(1, ignore_interrupts, nullptr) == 0) {
    interrupts_are_ignored.get_future().wait();
  }
  return taken;
}

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
      "race:^__rte_ring_update_tail$\n"
      // Opens descriptors on the thread for interrupts, closes them on the one that stops a port.
      "race:librte_net_memif.so\n";
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
