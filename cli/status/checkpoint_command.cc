#include <fmt/format.h>
#include <string>
#include <vector>

#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/printable.h"
#include "control/checkpoint/checkpoint_reader.h"
#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::cli {
namespace {

using control::CheckpointHeader;

// The elements of each key that the file has.
std::vector<std::uint64_t> elements_here(const CheckpointHeader& header) {
  std::vector<std::uint64_t> elements(header.keys.size(), 0);
  for (const auto& range : header.ranges) elements[range.key] += range.elements;
  return elements;
}

Report report_of(const CheckpointHeader& header, std::uint64_t bytes) {
  const std::vector<std::uint64_t> here = elements_here(header);
  const std::string optimizer = control::optimizer_text(header.settings);
  Report report;
  report.line(fmt::format("{} after step {}, part {} of {}, {}: every checksum is right\n",
                          optimizer, grouped(header.step), header.part + 1, header.parts,
                          human_bytes(static_cast<double>(bytes))));
  report.fact("bytes", bytes);
  report.fact("step", header.step);
  report.fact("optimizer", optimizer);
  report.fact("part", header.part + 1);  // as in the names of files
  report.fact("parts", header.parts);
  ReportTable& table = report.table("keys", {{"key", "name", Align::left},
                                             {"dtype", "dtype", Align::left},
                                             {"elements", "elements"},
                                             {"here", "elements_here"},
                                             {"steps", "steps"}});
  for (std::size_t k = 0; k < header.keys.size(); ++k) {
    const auto& key = header.keys[k];
    table.add({Cell(control::printable(key.name, control::kLongestKeyName), key.name),
               aggregation::data_type_name(key.type), cell::count(key.elements),
               cell::count(here[k]), cell::count(header.steps[k])});
  }
  return report;
}

struct CheckpointOptions {
  std::string path;
  bool json = false;
};

int run_checkpoint(const CheckpointOptions& options) {
  control::CheckpointReader reader(control::open_checkpoint(options.path),
                                   fmt::format("checkpoint {}", control::quoted(options.path)));
  reader.check_rest();
  report_of(reader.header(), reader.file_bytes()).write(options.json);
  return 0;
}

}  // namespace

void add_checkpoint(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "checkpoint", "Check a parameter hub's checkpoint file and show what is in it");
  auto& options = options_of<CheckpointOptions>(command, action, run_checkpoint);
  add_text(command, "file", options.path, "The file")->required();
  command->add_flag("--json", options.json, "Print one JSON object");
  command->footer(
      "Reads the whole file. One that is truncated, damaged or foreign is refused with what is\n"
      "wrong, and exit code 2. docs/hub.md has the format.\n"
      "Example:\n"
      "  gradcube checkpoint digits.hub");
}

}  // namespace gradcube::cli
