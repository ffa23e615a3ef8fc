#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model/merge_profile.h"
#include "cli/model/merge_timeline.h"
#include "cli/model/model_commands.h"
#include "cli/model/policy_option.h"
#include "cli/text/option_checks.h"
#include "cli/text/report.h"
#include "cli/text/text_file.h"
#include "control/base/errors.h"
#include "control/merge/policies.h"

namespace gradcube::cli {
namespace {

using control::merge::Iteration;
using control::merge::Message;
using control::merge::Policy;
using nlohmann::ordered_json;

struct MergeOptions {
  std::string profile;
  std::string policy = "all";
  std::string timeline;
  bool json = false;
};

struct MergeRow {
  Policy policy;
  std::vector<Message> messages;
  double seconds;
};

std::vector<MergeRow> rows_of(const Iteration& iteration, const std::string& asked) {
  std::vector<MergeRow> rows;
  for (const Policy policy : policies_of(asked)) {
    std::vector<Message> messages = control::merge::messages_of(policy, iteration);
    const double seconds = control::merge::iteration_seconds(iteration, messages);
    rows.push_back({policy, std::move(messages), seconds});
  }
  return rows;
}

// Layers count from 1, as in the paper.
ordered_json merged_json(const std::vector<Message>& messages) {
  ordered_json merged = ordered_json::array();
  for (const Message& message : messages) {
    ordered_json layers = ordered_json::array();
    for (std::size_t l = message.first; l <= message.last; ++l) layers.push_back(l + 1);
    merged.push_back(std::move(layers));
  }
  return merged;
}

// "12 9-11 1-8"; a long list has its begin and its end.
std::string messages_text(const std::vector<Message>& messages) {
  constexpr std::size_t kShown = 6;  // at each end
  std::string text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages.size() > 2 * kShown + 1 && i == kShown) {
      text += " ...";
      i = messages.size() - kShown;
    }
    if (!text.empty()) text += ' ';
    const Message& message = messages[i];
    text += std::to_string(message.first + 1);
    if (message.last != message.first) text += fmt::format("-{}", message.last + 1);
  }
  return text;
}

Report report_of(const std::vector<MergeRow>& rows, const Iteration& iteration) {
  const std::size_t layers = iteration.layers.size();
  std::uint64_t bytes = 0;
  for (const auto& layer : iteration.layers) bytes += layer.bytes;
  const double computing = control::merge::computing_seconds(iteration);
  double least = rows.front().seconds;
  for (const MergeRow& row : rows) least = std::min(least, row.seconds);
  Report report;
  report.line(fmt::format(
      "# {} layer{}, {}; an all-reduce of M bytes takes {} + {:.4g} ns * M; the forward pass takes "
      "{}, the backward pass {}",
      grouped(layers), layers == 1 ? "" : "s", human_bytes(static_cast<double>(bytes)),
      human_seconds(iteration.cost.a), iteration.cost.b * 1e9,
      human_seconds(iteration.forward_seconds),
      human_seconds(computing - iteration.forward_seconds)));
  ReportTable& table =
      report.table("policies", {{"policy", "policy", Align::left},
                                {"messages", ""},
                                {"iteration", "iteration_seconds"},
                                {"relative", ""},
                                {"exposed", ""},
                                {"layers of each message", "merged", Align::left}});
  for (const MergeRow& row : rows) {
    table.add({control::merge::name_of(row.policy), cell::shown(grouped(row.messages.size())),
               cell::seconds(row.seconds),
               cell::shown(least > 0 ? fmt::format("{:.3f}", row.seconds / least) : "-"),
               cell::shown(human_seconds(row.seconds - computing)),
               Cell(messages_text(row.messages), merged_json(row.messages))});
  }
  return report;
}

void write_timeline(const std::string& path, const Iteration& iteration,
                    const std::vector<MergeRow>& rows) {
  std::vector<PolicyMessages> policies;
  for (const MergeRow& row : rows) policies.emplace_back(row.policy, row.messages);
  write_text_file("--timeline", path, merge_timeline(iteration, policies).dump() + "\n");
}

int run_merge(const MergeOptions& options) {
  if (options.profile.empty()) {
    throw control::UsageError(
        "--profile is missing: a file with what an all-reduce costs and the layers of a network; "
        "`gradcube model merge --help` shows one");
  }
  const Iteration iteration = read_merge_profile(options.profile);
  const std::vector<MergeRow> rows = rows_of(iteration, options.policy);
  if (!options.timeline.empty()) write_timeline(options.timeline, iteration, rows);
  report_of(rows, iteration).write(options.json);
  return 0;
}

}  // namespace

void add_model_merge(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "merge", "Which layers' gradients to send as one message, and what an iteration takes then");
  auto options = std::make_shared<MergeOptions>();
  command->add_option("--profile", options->profile, "File with a network's layers; see below");
  add_policy_option(command, options->policy);
  add_text(command, "--timeline", options->timeline,
           "Write when each layer is computed and each message travels into this file, in "
           "Chrome's trace format");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "The profile is JSON, layers from the first to the last:\n"
      "  {\"alpha\": 0.0006, \"beta\": 1.6e-9, \"forward_seconds\": 0.01,\n"
      "   \"layers\": [{\"bytes\": 4000, \"backward_seconds\": 0.001},\n"
      "              {\"bytes\": 90000, \"backward_seconds\": 0.002}]}\n"
      "An all-reduce of M bytes takes alpha + beta M: about what `gradcube perf allreduce`\n"
      "measures for few bytes, and by how much longer a byte more takes. Without forward_seconds\n"
      "the forward pass takes 0. docs/mg-wfbp.md explains the policies.\n"
      "Examples:\n"
      "  gradcube model merge --profile resnet50.json\n"
      "  gradcube model merge --profile resnet50.json --policy optimal --json\n"
      "  gradcube model merge --profile resnet50.json --timeline trace.json    for "
      "chrome://tracing");
  command->callback([options, &action] { action = [options] { return run_merge(*options); }; });
}

}  // namespace gradcube::cli
