// What the process group has to do with Python's interpreter, in few words.
#ifndef GRADCUBE_TRAINER_TORCH_INTERPRETER_H_
#define GRADCUBE_TRAINER_TORCH_INTERPRETER_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gradcube::pytorch {

// How long a signal may wait for its handler.
inline constexpr std::chrono::milliseconds kSignalInterval(50);

// The one that ends the interpreter.
bool is_main_thread();

// The interpreter is about to end. From then on Python unwinds each thread that asks for its lock,
// such as one that comes back from a call of PyTorch's, and a destructor in the way would end the
// process by std::terminate. Such a thread sleeps instead. `awaited`: the kernel's numbers of the
// threads that are no daemons: Python waits for them before it ends.
void expect_exit(const std::vector<pid_t>& awaited);

// Whether this thread is one of those, which must not sleep until then, or the main thread.
bool is_awaited_at_exit();

// Sleeps until the process has ended.
[[noreturn]] void sleep_until_exit();

// On the main thread: runs the handlers of signals that have come, and throws what they raise.
// Takes the interpreter lock for that.
void handle_signals();

// Pins memory for copies of this device, such as "cuda:0", where PyTorch has a call for that
// (gradcube/_torch_pinning.py); false: it has none, or the system refuses. Both take the
// interpreter lock, and do nothing where there is no interpreter any more.
bool pin_memory(const std::string& device, void* begin, std::size_t bytes);
void unpin_memory(const std::string& device, void* begin);

// Releases the interpreter lock while it lives, if this thread holds it.
class WithoutInterpreterLock {
 public:
  WithoutInterpreterLock();
  ~WithoutInterpreterLock();
  WithoutInterpreterLock(const WithoutInterpreterLock&) = delete;
  WithoutInterpreterLock& operator=(const WithoutInterpreterLock&) = delete;

 private:
  void* state_ = nullptr;  // a PyThreadState
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_INTERPRETER_H_
