// What `gradcube perf hub` is asked for: which hub is measured, and by which job.
#ifndef GRADCUBE_CLI_PERF_HUB_OPTIONS_H_
#define GRADCUBE_CLI_PERF_HUB_OPTIONS_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "cli/measure/hub_runner.h"
#include "cli/perf/job_options.h"
#include "cli/perf/perf_cluster.h"
#include "cli/text/report.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// As they were written; empty where they were not.
struct HubOptions : JobOptions {
  std::string network = "resnet50";
  std::string keys;
  std::string optimizer = "sgd";
  std::string aggregator;
  HubRunSettings run;  // what needs no more than parsing
};

// `options` must outlive the parsing.
void add_hub_options(CLI::App* command, HubOptions& options);

// All but what depends on the cluster. Throws UsageError.
HubRunSettings hub_settings_of(const HubOptions& options);

// The cluster for the job, and its part of the settings. Throws what read_perf_cluster() does, and
// SetupError where this host has not the memory for gradients, weights and the optimizer's state.
PerfCluster hub_cluster(const control::RunDirectory& directory, const HubOptions& options,
                        HubRunSettings& settings);

// What a round does to the links: an all-reduce of the model by the hub's plan.
PerfLinks hub_links(const PerfCluster& cluster, const HubRunSettings& settings);

// "resnet50: 161 keys, 102 MB, sgd", and who aggregates it, if one does.
std::string hub_text(const HubOptions& options, const HubRunSettings& settings);

// What its JSON has beside the rows.
void add_hub_facts(Report& report, const PerfCluster& cluster, const HubOptions& options,
                   const HubRunSettings& settings);

// "131072" or "auto", as tables show the length of chunks.
std::string chunk_text(std::uint64_t chunk_bytes);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_HUB_OPTIONS_H_
