// A command's standard output, checked: a full disk or a closed pipe makes the command fail instead
// of losing its output; and its messages. One thread at a time.
#ifndef GRADCUBE_CLI_TEXT_OUTPUT_H_
#define GRADCUBE_CLI_TEXT_OUTPUT_H_

#include <fmt/format.h>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace gradcube::cli {

// Both throw control::SetupError, with the system's reason, when standard output cannot be written.
void write_output(std::string_view text);
// Returns once everything that was printed has left this process.
void flush_output();

// One line to standard error, "gradcube: message", after what was printed. Never throws for a
// stream that cannot be written to.
void complain(const std::string& message);

// For code that writes to a std::ostream: what `write` writes goes through write_output(). Throws
// what that throws.
void write_by(const std::function<void(std::ostream&)>& write);

template <typename... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_OUTPUT_H_
