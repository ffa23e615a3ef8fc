// What `gradcube model gst` reports: times, from which size on an algorithm wins, and switches.
#ifndef GRADCUBE_CLI_MODEL_GST_REPORTS_H_
#define GRADCUBE_CLI_MODEL_GST_REPORTS_H_

#include <string>
#include <vector>

#include "cli/text/report.h"
#include "control/model/gst_table.h"
#include "control/model/model_topology.h"

namespace gradcube::cli {

// Its first line is on the load, and names T_F of it.
Report times_report(const std::vector<control::model::ModelRow>& rows,
                    const control::model::ModelLoad& load);

// Each topology's algorithms of the least time, by size. Every time is a line over the bytes.
Report crossover_report(const std::vector<control::model::ModelTopology>& topologies,
                        const control::model::ModelLoad& load);

// Of each BCube(n,k), and of Fat-Trees of n-port switches for as many servers: with one NIC, and
// with k. Throws a UsageError for another topology.
Report switches_report(const std::vector<control::model::ModelTopology>& topologies);

// Networks of different rates, as they were written.
struct BlueConnectOptions {
  std::string network = "tree";
  std::vector<std::string> factors;
  std::vector<std::string> rates;
};

// By BlueConnect's Eq. 6 to 10: one level, two levels and BlueConnect. The load's rate becomes the
// slowest one. Throws a UsageError.
std::vector<control::model::ModelRow> blueconnect_rows(const BlueConnectOptions& options,
                                                       control::model::ModelLoad& load);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_GST_REPORTS_H_
