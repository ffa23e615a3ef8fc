// The rows of `gradcube model gst` and `gradcube model blueconnect`, as a table and as JSON.
#ifndef GRADCUBE_CLI_MODEL_MODEL_REPORT_H_
#define GRADCUBE_CLI_MODEL_MODEL_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/model/gst_table.h"

namespace gradcube::cli {

// {"rows":[{"topology":..,"algorithm":..,"servers":..,"seconds":..,"relative":..,"source":..}]}
nlohmann::ordered_json model_json(const std::vector<control::model::ModelRow>& rows);

// A line on the load, which names T_F of the load, and the table.
std::string model_text(const std::vector<control::model::ModelRow>& rows,
                       const control::model::ModelLoad& load);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_MODEL_REPORT_H_
