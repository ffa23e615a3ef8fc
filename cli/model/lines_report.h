// An all-reduce of M bytes as a line a + bM, by the four rows of MG-WFBP's Table II.
#ifndef GRADCUBE_CLI_MODEL_LINES_REPORT_H_
#define GRADCUBE_CLI_MODEL_LINES_REPORT_H_

#include <string_view>

#include "cli/text/report.h"
#include "control/model/mgwfbp_model.h"

namespace gradcube::cli {

// nodes: as parse_node_counts() reads them. Where they are no power of two, the ring alone has a
// row. Throws a UsageError.
Report lines_report(std::string_view nodes, std::string_view bytes,
                    const control::model::NodeCosts& costs);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_LINES_REPORT_H_
