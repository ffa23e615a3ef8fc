// The subcommands of `gradcube model`, each in its own file; like those of commands.h.
#ifndef GRADCUBE_CLI_MODEL_MODEL_COMMANDS_H_
#define GRADCUBE_CLI_MODEL_MODEL_COMMANDS_H_

#include "cli/text/command.h"

namespace gradcube::cli {

void add_model_gst(CLI::App& model, Action& action);
void add_model_merge(CLI::App& model, Action& action);
void add_model_training(CLI::App& model, Action& action);
void add_model_hub(CLI::App& model, Action& action);
void add_model_figure(CLI::App& model, Action& action);
void add_model_fit(CLI::App& model, Action& action);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_MODEL_COMMANDS_H_
