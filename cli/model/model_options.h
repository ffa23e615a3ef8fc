// What the subcommands of `gradcube model` have in common.
#ifndef GRADCUBE_CLI_MODEL_MODEL_OPTIONS_H_
#define GRADCUBE_CLI_MODEL_MODEL_OPTIONS_H_

#include <CLI/App.hpp>
#include <string>

#include "cli/text/command.h"
#include "control/model/gst_table.h"

namespace gradcube::cli {

struct ModelLoadOptions {
  std::string bytes = "100M";
  std::string latency = "0";
};

// --bytes and --latency.
void add_load_options(CLI::App* command, ModelLoadOptions& options);

// Without a rate. Throws a UsageError for a size or a latency that cannot be read, or 0 bytes.
control::model::ModelLoad load_of(const ModelLoadOptions& options);

// The subcommands, each in its own file; like those of commands.h.
void add_model_gst(CLI::App& model, Action& action);
void add_model_crossover(CLI::App& model, Action& action);
void add_model_blueconnect(CLI::App& model, Action& action);
void add_model_lines(CLI::App& model, Action& action);
void add_model_merge(CLI::App& model, Action& action);
void add_model_hub(CLI::App& model, Action& action);
void add_model_hierarchy(CLI::App& model, Action& action);
void add_model_training(CLI::App& model, Action& action);
void add_model_cost(CLI::App& model, Action& action);
void add_model_figure(CLI::App& model, Action& action);
void add_model_fit(CLI::App& model, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_MODEL_OPTIONS_H_
