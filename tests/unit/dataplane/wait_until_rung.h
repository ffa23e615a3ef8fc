// How a test sleeps on a doorbell.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_WAIT_UNTIL_RUNG_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_WAIT_UNTIL_RUNG_H_

#include <cerrno>
#include <gtest/gtest.h>
#include <poll.h>

#include "dataplane/host/doorbell.h"

namespace gradcube::dataplane {

// Blocks until the bell is rung. Fails the test when that takes longer than a minute.
inline void wait_until_rung(const Doorbell& bell) {
  constexpr int kMinute = 60'000;  // ms
  pollfd wanted{bell.descriptor(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&wanted, 1, kMinute);
  } while (ready < 0 && errno == EINTR);
  ASSERT_EQ(ready, 1) << "the bell was not rung";
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_WAIT_UNTIL_RUNG_H_
