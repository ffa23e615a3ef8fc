// What a trainer asks for when it joins a job: gradcube_options, checked, in the form in which a
// Hello carries it.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_OPTIONS_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "trainer/shared_layout.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

struct Options {
  std::vector<shared::Lane> lanes;  // 1 to kMaxLanes
  unsigned weight = 1;
  int rank = -1;                       // -1: by the server's place
  std::vector<std::uint32_t> members;  // ascending; empty: every server
  bool reproducible = false;
  unsigned trainers = 1;  // on each server
  int local = -1;         // which of them; -1: any
};

// `given` may be null: all defaults. Throws Failure (GRADCUBE_EINVAL) with what is expected.
Options read_options(const gradcube_options* given);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_OPTIONS_H_
