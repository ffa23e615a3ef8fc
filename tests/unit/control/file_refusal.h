// Why a cluster file of this text is refused.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_FILE_REFUSAL_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_FILE_REFUSAL_H_

#include <string>
#include <string_view>

#include "control/base/errors.h"
#include "control/settings/cluster_file.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {

inline std::string file_refusal(std::string_view text) {
  return message_of<UsageError>([&] { parse_cluster_file(text, "c.toml"); });
}

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_FILE_REFUSAL_H_
