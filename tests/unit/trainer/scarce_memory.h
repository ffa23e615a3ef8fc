// A system without memory for the thread of a test: scarce_memory.cc replaces operator new.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_SCARCE_MEMORY_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_SCARCE_MEMORY_H_

namespace gradcube::trainer {

// While it lives nothing that this thread asks operator new for is there.
class NoMemory {
 public:
  NoMemory();
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_SCARCE_MEMORY_H_
