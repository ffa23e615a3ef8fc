// What joins the servers of a test bed (test_bed.h): links and switches, and how they are reported
// and changed.
//
// The bed calls the functions in the order in which they stand here, impair() and report() any
// number of times in between. Threads: the bed's. Errors are control::UsageError or SetupError.
#ifndef GRADCUBE_DATAPLANE_BED_BED_NETWORK_H_
#define GRADCUBE_DATAPLANE_BED_BED_NETWORK_H_

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/bed/daemon_process.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

class BedNetwork {
 public:
  virtual ~BedNetwork() = default;
  BedNetwork(const BedNetwork&) = delete;
  BedNetwork& operator=(const BedNetwork&) = delete;

  // What has to be there before the servers' processes start. Those get a network of this kind.
  virtual void prepare() = 0;
  virtual DaemonProcess::Network network_of_servers() const = 0;
  // How a server's daemon finds its ports: arguments of gradcubed.
  virtual std::vector<std::string> port_arguments() const = 0;
  // Joins the servers, whose processes wait, one for each server.
  virtual void join(const std::deque<DaemonProcess>& servers) = 0;
  // From now on the loop runs.
  virtual void watch(ControlLoop& loop) = 0;

  // "impairments" and "impaired_links", as impairments_report() says (../daemon/switch_requests.h),
  // and "switches", as an embedded cluster's status has them.
  virtual nlohmann::ordered_json report() = 0;
  // Does what the request {"command":"impair",...} asks for; returns how many links it has changed.
  virtual std::size_t impair(const nlohmann::json& request) = 0;

  // The servers' daemons have ended.
  virtual void end() = 0;

 protected:
  BedNetwork() = default;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_BED_NETWORK_H_
