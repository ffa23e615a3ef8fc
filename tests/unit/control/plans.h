// Plans of what a command line would name, for tests.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_PLANS_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_PLANS_H_

#include <string>
#include <string_view>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {

inline Plan plan_of(std::string_view algorithm, const std::string& spec) {
  return make_plan(algorithm, parse_topology(spec, "test"), "--algorithm");
}

// Why there is no such plan; "" if there is one.
inline std::string refusal(std::string_view algorithm, const std::string& spec) {
  return message_of<UsageError>([&] { plan_of(algorithm, spec); });
}

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_PLANS_H_
