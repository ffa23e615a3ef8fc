// The parts of what `gradcube status` prints (status_text.h): whom the daemon serves, which jobs
// there are and for whom they wait, and tables whose rows are objects of the daemon's status.
#ifndef GRADCUBE_CLI_STATUS_STATUS_PARTS_H_
#define GRADCUBE_CLI_STATUS_STATUS_PARTS_H_

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/text/json_fields.h"
#include "cli/text/report.h"

namespace gradcube::cli {

// --- rows_text.cc

// text(row, path) is a row's cell.
struct JsonColumn {
  const char* title;
  const char* path;
  std::string (*text)(const nlohmann::json&, std::string_view) = cell_text;
  Align align = Align::right;
};

ReportTable rows_table(const nlohmann::json& rows, std::initializer_list<JsonColumn> columns);

// The address at that path.
std::string address_at(const nlohmann::json& row, std::string_view path);

// What emulated switches did with frames; empty without any.
std::string switches_text(const nlohmann::json& status);

// Hubs that a server aggregates for jobs that have no trainers there; empty where there are none.
std::string hubs_text(const nlohmann::json& status);

// The flows, or how many there are: many are listed only where all are asked for. Empty where there
// are none.
std::string flows_text(const nlohmann::json& status, bool all_flows);

// What engines count; empty where there is nothing.
std::string counters_text(const nlohmann::json& status);

// --- job_text.cc

// A table of the jobs, one of the lanes of those that asked for other than the default, and one of
// all their trainers.
std::string jobs_text(const nlohmann::json& status);

// --- quota_text.cc

// "8 GB of trainers' buffers, 32 jobs on a server and 64 trainers per user; user 1000 has 1.5 MB,
// jobs 3 of 32, trainers 6 of 64". Of a status that a tenant has got, himself alone.
std::string quota_text(const nlohmann::json& status);

// "users alice, 1001; groups ml"; empty where only the daemon's own user is served, and for
// tenants.
std::string allowed_text(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_STATUS_PARTS_H_
