#include "cli/text/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <streambuf>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

// A message has one line, however long the text from elsewhere is that it holds.
constexpr std::size_t kLongestMessage = 4000;

[[noreturn]] void throw_write_error(int error) {
  throw control::SetupError(
      fmt::format("cannot write to standard output: {}",
                  error != 0 ? std::strerror(error) : "an earlier write has failed"));
}

class OutputBuffer : public std::streambuf {
  int_type overflow(int_type letter) override {
    const char text = traits_type::to_char_type(letter);
    write_output({&text, 1});
    return letter;
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    write_output({text, static_cast<std::size_t>(size)});
    return size;
  }
};

}  // namespace

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_write_error(errno);
}

void complain(const std::string& message) {
  std::fflush(stdout);
  // Not fmt::print, which throws where the stream cannot be written to.
  const std::string line =
      fmt::format("gradcube: {}\n", control::printable(message, kLongestMessage));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void write_by(const std::function<void(std::ostream&)>& write) {
  OutputBuffer buffer;
  std::ostream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // pass on what write_output() throws
  write(stream);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_write_error(errno);
}

}  // namespace gradcube::cli
