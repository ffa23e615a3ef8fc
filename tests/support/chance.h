// Whether something happens that has this probability. What cannot happen draws nothing.
#ifndef GRADCUBE_TESTS_SUPPORT_CHANCE_H_
#define GRADCUBE_TESTS_SUPPORT_CHANCE_H_

#include "dataplane/fabric/emulated/random.h"

namespace gradcube {

inline bool hits(dataplane::SeededRandom& random, double probability) {
  return probability > 0 && static_cast<double>(random.next() >> 11) * 0x1p-53 < probability;
}

}  // namespace gradcube

#endif  // GRADCUBE_TESTS_SUPPORT_CHANCE_H_
