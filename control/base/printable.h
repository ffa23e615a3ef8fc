// Foreign text in messages: what a user typed, what a file or another program said. It is
// shortened, and what could move a terminal's cursor or end a line is escaped, so a message stays
// one line that can be read.
#ifndef GRADCUBE_CONTROL_BASE_PRINTABLE_H_
#define GRADCUBE_CONTROL_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace gradcube::control {

// Enough to recognise a value by.
inline constexpr std::size_t kShownBytes = 60;

// The text with control characters and bytes that are not UTF-8 as \n, \t or \x1b. A text of more
// than `most` bytes is cut, and its end says how many bytes it had: "aaaa... (20000 bytes)".
std::string printable(std::string_view text, std::size_t most = kShownBytes);

// The same between quotation marks.
std::string quoted(std::string_view text, std::size_t most = kShownBytes);

// The text as one word of a shell's command line: between quotation marks if it needs them.
std::string shell_word(std::string_view text);

// The last line of a text that says anything, without blanks at its end; empty if no line does.
std::string_view last_line(std::string_view text);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_PRINTABLE_H_
