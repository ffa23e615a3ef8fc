#include "cli/text/text_file.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {

void write_text_file(std::string_view option, const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file.fail()) return;
  throw control::SetupError(fmt::format("{}: cannot write {}: {}", option, control::quoted(path),
                                        errno != 0 ? std::strerror(errno) : "the disk refuses it"));
}

}  // namespace gradcube::cli
