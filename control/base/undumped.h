// Memory for keys: pages of its own, which no core dump has (MADV_DONTDUMP), and which are wiped at
// the end. What lies in it stays where it is.
//
// Ownership: owns the object and its pages. Errors: SetupError, where the system has no memory or
// does not know such pages. Threads: as those of the object.
#ifndef GRADCUBE_CONTROL_BASE_UNDUMPED_H_
#define GRADCUBE_CONTROL_BASE_UNDUMPED_H_

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <utility>

#include "control/base/errors.h"

namespace gradcube::control {

template <typename Object>
class Undumped {
 public:
  template <typename... Arguments>
  explicit Undumped(Arguments&&... arguments)
      : object_(std::construct_at(static_cast<Object*>(pages_.address),
                                  std::forward<Arguments>(arguments)...)) {}
  ~Undumped() { std::destroy_at(object_); }
  Undumped(const Undumped&) = delete;
  Undumped& operator=(const Undumped&) = delete;

  Object& operator*() { return *object_; }
  const Object& operator*() const { return *object_; }
  Object* operator->() { return object_; }
  const Object* operator->() const { return object_; }

 private:
  struct Pages {
    Pages()
        : address(mmap(nullptr, sizeof(Object), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0)) {
      if (address == MAP_FAILED) throw refusal(errno);
      if (madvise(address, sizeof(Object), MADV_DONTDUMP) == 0) return;
      const int error = errno;
      munmap(address, sizeof(Object));
      throw refusal(error);
    }
    ~Pages() {
      explicit_bzero(address, sizeof(Object));
      munmap(address, sizeof(Object));
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    static SetupError refusal(int error) {
      return SetupError(std::string("no memory for a key that is in no core dump: ") +
                        std::strerror(error));
    }

    void* address;
  };

  Pages pages_;  // made first, and gone last
  Object* object_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_UNDUMPED_H_
