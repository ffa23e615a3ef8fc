// Runs something on EAL's interrupt thread, for drivers that change their devices there without a
// lock: what else changes such a device has to do it on the same thread.
//
// Threads: any but the interrupt thread, which would wait for itself; pollers must not wait for the
// caller. Needs an Eal.
#ifndef GRADCUBE_DATAPLANE_HOST_INTERRUPT_THREAD_H_
#define GRADCUBE_DATAPLANE_HOST_INTERRUPT_THREAD_H_

#include <functional>

namespace gradcube::dataplane {

// Returns when `work`, which throws nothing, has been done. Where the thread takes no work, because
// the system has no memory for an alarm, it is done by the caller.
void run_on_interrupt_thread(const std::function<void()>& work);

// Ends the thread. The last thing before rte_eal_cleanup(), which frees what the thread reads and
// leaves it running: a process that has ended well could crash while it exits. No device may be in
// use any more. Does nothing where the thread takes no work.
void stop_interrupt_thread();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_INTERRUPT_THREAD_H_
