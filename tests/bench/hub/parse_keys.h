// The KEYS of the hub's benches: the elements of each key, "9408,64,64".
#ifndef GRADCUBE_TESTS_BENCH_HUB_PARSE_KEYS_H_
#define GRADCUBE_TESTS_BENCH_HUB_PARSE_KEYS_H_

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace gradcube::bench {

// Throws std::invalid_argument if there is no number.
inline std::vector<std::size_t> parse_keys(const std::string& text) {
  std::vector<std::size_t> keys;
  std::stringstream all(text);
  for (std::string one; std::getline(all, one, ',');) keys.push_back(std::stoul(one));
  if (keys.empty()) throw std::invalid_argument("KEYS: expected numbers of elements");
  return keys;
}

}  // namespace gradcube::bench

#endif  // GRADCUBE_TESTS_BENCH_HUB_PARSE_KEYS_H_
