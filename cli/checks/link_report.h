// What `gradcube check` prints of the links that it measured.
#ifndef GRADCUBE_CLI_CHECKS_LINK_REPORT_H_
#define GRADCUBE_CLI_CHECKS_LINK_REPORT_H_

#include <vector>

#include "cli/checks/link_check.h"
#include "cli/text/report.h"
#include "control/plan/base/topology.h"

namespace gradcube::cli {

// A table of the links, a line for each level, and the verdict; also that the daemons waited for
// cores, where links have problems and that may be why. Of more than kMostLinks only those with a
// problem are listed, unless `all`.
//
// {"topology":..,"ok":true,"links":[{"level":0,"between":[[0,0],[0,1]],"configured_bps":..,
// "payload_bps":..,"round_trip_seconds":..,"sent":..,"lost":..,"core_wait":0.02,
// "problem":null,"left_out":null}]}; null for what is not limited, not measured, right, or not left
// out.
inline constexpr std::size_t kMostLinks = 64;
Report links_report(const control::Topology& topology, const std::vector<LinkResult>& results,
                    bool all);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_LINK_REPORT_H_
