#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/status/commands.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/printable.h"
#include "control/checkpoint/checkpoint_reader.h"
#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::cli {
namespace {

using control::CheckpointHeader;
using nlohmann::ordered_json;

// The elements of each key that the file has.
std::vector<std::uint64_t> elements_here(const CheckpointHeader& header) {
  std::vector<std::uint64_t> elements(header.keys.size(), 0);
  for (const auto& range : header.ranges) elements[range.key] += range.elements;
  return elements;
}

std::string header_json(const CheckpointHeader& header, std::uint64_t bytes) {
  const std::vector<std::uint64_t> here = elements_here(header);
  ordered_json keys = ordered_json::array();
  for (std::size_t k = 0; k < header.keys.size(); ++k) {
    const auto& key = header.keys[k];
    keys.push_back({{"name", key.name},
                    {"elements", key.elements},
                    {"dtype", aggregation::data_type_name(key.type)},
                    {"elements_here", here[k]},
                    {"steps", header.steps[k]}});
  }
  const ordered_json report = {{"bytes", bytes},
                               {"step", header.step},
                               {"optimizer", control::optimizer_text(header.settings)},
                               {"part", header.part + 1},  // as in the names of files
                               {"parts", header.parts},
                               {"keys", std::move(keys)}};
  return report.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string header_text(const CheckpointHeader& header, std::uint64_t bytes) {
  const std::vector<std::uint64_t> here = elements_here(header);
  TextTable table(
      {{"key", Align::left}, {"dtype", Align::left}, {"elements"}, {"here"}, {"steps"}});
  for (std::size_t k = 0; k < header.keys.size(); ++k) {
    const auto& key = header.keys[k];
    table.add_row({control::printable(key.name, control::kLongestKeyName),
                   std::string(aggregation::data_type_name(key.type)), grouped(key.elements),
                   grouped(here[k]), grouped(header.steps[k])});
  }
  return fmt::format("{} after step {}, part {} of {}, {}: every checksum is right\n\n",
                     control::optimizer_text(header.settings), grouped(header.step),
                     header.part + 1, header.parts, human_bytes(static_cast<double>(bytes))) +
         table.text();
}

int run_checkpoint(const std::string& path, bool as_json) {
  auto source = control::open_checkpoint(path);
  const std::uint64_t bytes = source->size();
  control::CheckpointReader reader(std::move(source),
                                   fmt::format("checkpoint {}", control::quoted(path)));
  reader.check_rest();
  write_output(as_json ? header_json(reader.header(), bytes) : header_text(reader.header(), bytes));
  return 0;
}

}  // namespace

void add_checkpoint(CLI::App& tool, Action& action) {
  struct Options {
    std::string path;
    bool json = false;
  };
  CLI::App* command = tool.add_subcommand(
      "checkpoint", "Check a parameter hub's checkpoint file and show what is in it");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->path, "The file")->required()->check(not_empty());
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Reads the whole file. One that is truncated, damaged or foreign is refused with what is\n"
      "wrong, and exit code 2. docs/hub.md has the format.\n"
      "Example:\n"
      "  gradcube checkpoint digits.hub");
  command->callback([options, &action] {
    action = [options] { return run_checkpoint(options->path, options->json); };
  });
}

}  // namespace gradcube::cli
