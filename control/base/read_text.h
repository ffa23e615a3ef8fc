// Small files, read whole.
#ifndef GRADCUBE_CONTROL_BASE_READ_TEXT_H_
#define GRADCUBE_CONTROL_BASE_READ_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "control/base/descriptor.h"

namespace gradcube::control {

// What can be read from here on; of more than `most` bytes one more than that. Nothing, with errno,
// where it cannot be read. Any thread.
std::optional<std::string> read_text(const Descriptor& file, std::size_t most);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_READ_TEXT_H_
