// A value that came from outside, as a message shows it: in quotes, one short line of printable
// ASCII. So a message can neither fill nor steer the terminal it is printed on.
#ifndef GRADCUBE_TRAINER_SRC_BASE_QUOTED_H_
#define GRADCUBE_TRAINER_SRC_BASE_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace gradcube::trainer {

inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 64;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kShown)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    }
  }
  return result + (text.size() > kShown ? "...'" : "'");
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_QUOTED_H_
