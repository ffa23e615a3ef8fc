#include "control/base/printable.h"

namespace gradcube::control {
namespace {

constexpr unsigned char kContinuationMask = 0xc0;
constexpr unsigned char kContinuation = 0x80;
constexpr std::string_view kDigits = "0123456789abcdef";

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// How many bytes the UTF-8 sequence that begins here has; 0 when none begins here.
std::size_t sequence_length(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

// The length of the character at `at` if it may be shown as it is, else 0.
std::size_t shown_length(std::string_view text, std::size_t at) {
  const unsigned char first = byte_at(text, at);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = sequence_length(first);
  if (length == 0 || text.size() - at < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, at + i) & kContinuationMask) != kContinuation) return 0;
  }
  // U+0080 to U+009F are control characters too: some terminals take U+009B for an escape.
  const bool control = first == 0xc2 && byte_at(text, at + 1) < 0xa0;
  return control ? 0 : length;
}

std::string escaped(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  const bool cut = text.size() > most;
  std::string shown;
  for (std::size_t at = 0; at < text.size() && at < most;) {
    const std::size_t length = shown_length(text, at);
    if (length == 0) {
      shown += escaped(byte_at(text, at++));
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  if (cut) shown += "... (" + std::to_string(text.size()) + " bytes)";
  return shown;
}

std::string quoted(std::string_view text, std::size_t most) {
  return '"' + printable(text, most) + '"';
}

std::string shell_word(std::string_view text) {
  if (!text.empty() &&
      text.find_first_of(" \t\n'\"\\{}()[]<>|&;$`*?#~!") == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char letter : text)
    word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string_view last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \r\n") + 1);  // npos + 1 is 0
  return text.substr(text.find_last_of('\n') + 1);
}

}  // namespace gradcube::control
