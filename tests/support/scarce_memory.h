// A system without memory for the thread of a test: scarce_memory.cc replaces operator new.
#ifndef GRADCUBE_TESTS_SUPPORT_SCARCE_MEMORY_H_
#define GRADCUBE_TESTS_SUPPORT_SCARCE_MEMORY_H_

#include <functional>

namespace gradcube::trainer {

// While it lives nothing that this thread asks operator new for is there; or from the moment on at
// which since() is true, which is asked each time.
class NoMemory {
 public:
  explicit NoMemory(std::function<bool()> since = [] { return true; });
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  const std::function<bool()> since_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_SUPPORT_SCARCE_MEMORY_H_
