#include "control/base/read_text.h"

#include <cerrno>
#include <unistd.h>

namespace gradcube::control {

std::optional<std::string> read_text(const Descriptor& file, std::size_t most) {
  std::string text(most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t more = read(file.get(), text.data() + size, text.size() - size);
    if (more == 0) break;
    if (more > 0) size += static_cast<std::size_t>(more);
    if (more < 0 && errno != EINTR) return std::nullopt;
  }
  text.resize(size);
  return text;
}

}  // namespace gradcube::control
