// What a trainer asks for when it joins a job: gradcube_options, checked, in the form in which a
// Hello carries it.
#ifndef GRADCUBE_TRAINER_SRC_CONNECTION_OPTIONS_H_
#define GRADCUBE_TRAINER_SRC_CONNECTION_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "trainer/shared_layout.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

struct Wish {
  shared::Hello hello{};               // but for what Connection::ask() adds
  std::vector<std::uint32_t> members;  // ascending; empty: every server
};

// `given` may be null: all defaults. Throws Failure (GRADCUBE_EINVAL) with what is expected.
Wish read_options(const gradcube_options* given);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CONNECTION_OPTIONS_H_
