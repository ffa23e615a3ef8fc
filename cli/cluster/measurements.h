// What `gradcube perf` has measured on a cluster, kept in the run directory for `gradcube plan
// --why`: of each algorithm and size the last median of an all-reduce on all servers, one at a
// time.
//
// The file is JSON, measured.json:
//
//   {"cluster":"...","all_reduce":[{"algorithm":"bml","bytes":65536,"seconds":0.0012}, ...]}
//
// "cluster" is RunningCluster::key: what another cluster has measured does
// not count, and is dropped by the next note(). A file that cannot be read, is too large or has
// another form counts as empty, since it can be measured again. It is replaced as a whole; of two
// commands that write at the same time one wins. Any thread.
#ifndef GRADCUBE_CLI_CLUSTER_MEASUREMENTS_H_
#define GRADCUBE_CLI_CLUSTER_MEASUREMENTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

class Measurements {
 public:
  static constexpr std::size_t kMostEntries = 10'000;

  // Those of this cluster.
  static Measurements read(const control::RunDirectory& directory, const std::string& cluster);

  std::optional<double> seconds(const std::string& algorithm, std::uint64_t bytes) const;

  void note(const std::string& algorithm, std::uint64_t bytes, double seconds);
  // Throws SetupError when the file cannot be written.
  void write(const control::RunDirectory& directory) const;

 private:
  std::string cluster_;
  std::map<std::pair<std::string, std::uint64_t>, double> all_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_MEASUREMENTS_H_
