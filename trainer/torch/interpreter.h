// What the process group has to do with Python's interpreter, in few words.
#ifndef GRADCUBE_TRAINER_TORCH_INTERPRETER_H_
#define GRADCUBE_TRAINER_TORCH_INTERPRETER_H_

#include <chrono>

namespace gradcube::pytorch {

// How long a signal may wait for its handler.
inline constexpr std::chrono::milliseconds kSignalInterval(50);

// On the main thread: runs the handlers of signals that have come, and throws what they raise.
// Takes the interpreter lock for that.
void handle_signals();

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
