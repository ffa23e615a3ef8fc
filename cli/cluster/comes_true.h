// Waits for what nothing tells of: it is looked for again and again.
#ifndef GRADCUBE_CLI_CLUSTER_COMES_TRUE_H_
#define GRADCUBE_CLI_CLUSTER_COMES_TRUE_H_

#include <chrono>
#include <thread>

namespace gradcube::cli {

// Calls is_so(), with a pause between two calls, until it returns true or this has taken so long.
// Whether it has. What is_so() throws is passed on.
template <typename IsSo>
bool comes_true(std::chrono::milliseconds patience, std::chrono::milliseconds pause,
                const IsSo& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_COMES_TRUE_H_
