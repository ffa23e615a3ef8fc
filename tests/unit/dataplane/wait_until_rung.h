#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_WAIT_UNTIL_RUNG_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_WAIT_UNTIL_RUNG_H_

#include <poll.h>

#include "dataplane/host/doorbell.h"

namespace gradcube::dataplane {

/// Blocks, without a limit, until the bell is rung.
inline void wait_until_rung(const Doorbell& bell) {
  pollfd wanted{bell.descriptor(), POLLIN, 0};
  while (poll(&wanted, 1, -1) <= 0) {
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_WAIT_UNTIL_RUNG_H_
