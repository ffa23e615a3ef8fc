// The parameters of an algorithm, as its name lists them: "mesh,ring" of "hips:mesh,ring".
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_NAME_PARAMETERS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_NAME_PARAMETERS_H_

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gradcube::control {

// What stands between the separators: always one item more than there are separators, and any of
// them may be empty.
inline std::vector<std::string_view> listed(std::string_view list, char separator) {
  std::vector<std::string_view> items;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_NAME_PARAMETERS_H_
