// What `gradcube perf allreduce --json` has measured, read from a file for a figure.
#ifndef GRADCUBE_CLI_MODEL_FIGURE_MEASURED_H_
#define GRADCUBE_CLI_MODEL_FIGURE_MEASURED_H_

#include <string>

#include "control/model/figure.h"

namespace gradcube::cli {

// Throws a UsageError if the file cannot be read, is no such report, or is one of another
// collective or of a part of the servers. Results of several collectives in flight are left out.
control::model::MeasuredRun read_measured(const std::string& path);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_FIGURE_MEASURED_H_
