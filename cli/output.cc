#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

[[noreturn]] void throw_write_error(int error) {
  throw control::SetupError(
      fmt::format("cannot write to standard output: {}",
                  error != 0 ? std::strerror(error) : "an earlier write has failed"));
}

}  // namespace

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_write_error(errno);
}

void flush_output() {
  errno = 0;
  // What other code printed, such as CLI11's help, may have failed before.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_write_error(errno);
}

}  // namespace gradcube::cli
