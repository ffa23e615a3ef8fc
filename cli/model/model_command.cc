#include <fmt/format.h>

#include "cli/model/commands.h"
#include "cli/model/model_commands.h"
#include "cli/text/parse_error.h"
#include "control/base/errors.h"

namespace gradcube::cli {

void add_model(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "model",
      "Compute what the papers' cost models say of a topology, or fit them to the running cluster");
  command->require_subcommand(0, 1);  // the action below has a better message for 0
  add_model_gst(*command, action);
  add_model_merge(*command, action);
  add_model_training(*command, action);
  add_model_hub(*command, action);
  add_model_figure(*command, action);
  add_model_fit(*command, action);
  command->footer(
      "Examples:\n"
      "  gradcube model gst --topology bcube:4,2 --topology fattree:16    compare algorithms\n"
      "  gradcube model gst --switches --topology bcube:4,2               count switches\n"
      "  gradcube model merge --profile resnet50.json                     merge layers' gradients\n"
      "  gradcube model training --network resnet50 --nodes 4..64         what that saves\n"
      "  gradcube model fit                                               measure the cluster\n"
      "docs/models.md says which equation of which paper each figure is.");
  command->callback([command, &action] {
    if (!command->get_subcommands().empty()) return;
    action = [command]() -> int {
      throw control::UsageError(
          fmt::format("the model is missing; the models are {}: `gradcube model --help` tells more",
                      command_list(*command)));
    };
  });
}

}  // namespace gradcube::cli
