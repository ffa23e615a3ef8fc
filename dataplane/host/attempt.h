// What a poller does in its iterations that needs memory of the heap, which a host may not have at
// times. Nothing of the daemon ends for that: it is done later.
#ifndef GRADCUBE_DATAPLANE_HOST_ATTEMPT_H_
#define GRADCUBE_DATAPLANE_HOST_ATTEMPT_H_

#include <new>

namespace gradcube::dataplane {

// False: work() has found no memory. What it leaves then must be good to go on with, and the caller
// must come again.
template <typename Work>
bool attempt(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_ATTEMPT_H_
