// A small JSON file in the run directory that commands leave for later ones.
//
// Whoever reads it must check every field (json_fields.h): anyone who may write to the directory,
// and an older version of this tool, may have written it. Any thread.
#ifndef GRADCUBE_CLI_CLUSTER_RUN_FILE_H_
#define GRADCUBE_CLI_CLUSTER_RUN_FILE_H_

#include <nlohmann/json.hpp>
#include <string_view>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

// The null value when there is no such file, it is longer than 4 MiB, or it is no JSON.
nlohmann::json read_run_file(const control::RunDirectory& directory, std::string_view name);

// Replaces the file as a whole. Throws SetupError when it cannot be written.
void write_run_file(const control::RunDirectory& directory, std::string_view name,
                    const nlohmann::json& content);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_RUN_FILE_H_
