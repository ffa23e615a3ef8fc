// An eventfd: a descriptor by which one thread wakes another, which waits for descriptors.
//
// Any thread.
#ifndef GRADCUBE_DATAPLANE_HOST_EVENT_DESCRIPTOR_H_
#define GRADCUBE_DATAPLANE_HOST_EVENT_DESCRIPTOR_H_

#include <cerrno>
#include <sys/eventfd.h>
#include <system_error>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {

// Throws std::system_error if the process cannot open more files.
inline control::Descriptor event_descriptor() {
  control::Descriptor descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (descriptor.valid()) return descriptor;
  throw std::system_error(errno, std::generic_category(),
                          "cannot make an eventfd to wake a thread (raise ulimit -n)");
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_EVENT_DESCRIPTOR_H_
