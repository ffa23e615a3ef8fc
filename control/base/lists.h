// Lists in texts: "0,1,2", "3,1 3,2", "4x3x2". What is listed are views of the text.
#ifndef GRADCUBE_CONTROL_BASE_LISTS_H_
#define GRADCUBE_CONTROL_BASE_LISTS_H_

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gradcube::control {

// What stands between the separators: always one item more than there are separators, and any of
// them may be empty.
inline std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> items;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

// The items that are not empty: each of these separates, and so do several.
inline std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_LISTS_H_
