// How a daemon comes to another key of the cluster while it runs, and its jobs go on
// (docs/security.md, "Another key").
//
// It is told to once its key file has the new one. From then on it takes frames by both keys; after
// a window, what it sends is by the new one; after another, and five seconds for what is on its
// way, it takes none by the former. So nobody sends by a key that another does not take, if all
// daemons of the cluster are told within one window of the first. They need not agree on anything.
//
// A job's frames have keys that are made of the cluster's as the job begins, and keep them: those
// of a job that began by the former are what is left of it.
//
// Control thread. Errors: begin() throws a UsageError or a SetupError, and has then changed
// nothing.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_KEY_CHANGE_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_KEY_CHANGE_H_

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "dataplane/daemon/local_cluster.h"

namespace gradcube::dataplane {

class KeyChange {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // The cluster outlives it. file: the key file; empty: there is no key.
  KeyChange(LocalCluster& cluster, std::filesystem::path file)
      : cluster_(cluster), file_(std::move(file)) {}

  // {"command":"rekey","window_ms":60000}: reads the file. With a window of 0 all is done at once,
  // also of a change that is under way. Said again, it is told how far it is, also when it is over;
  // where the file has the former key again before MACs are made by the other, nothing changes:
  //   "key": id of the key that MACs are made by, "other_key": that which is taken, too,
  //   "makes_in_ms": until it makes them by the other; "ends_in_ms": until it takes one alone
  nlohmann::ordered_json begin(const nlohmann::json& request, SteadyClock::time_point now);
  void tick(SteadyClock::time_point now);
  // The same, for `status`; without the last three where none is under way. Empty without a key.
  nlohmann::ordered_json report(SteadyClock::time_point now) const;

 private:
  void exchange();
  void end();

  LocalCluster& cluster_;
  std::filesystem::path file_;
  std::optional<SteadyClock::time_point> exchange_at_;  // while there are two keys, until then
  std::optional<SteadyClock::time_point> end_at_;       // while there are two keys
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_KEY_CHANGE_H_
