#include "cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <string>

#include "cli/commands.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

void complain(const std::string& message) {
  std::fflush(stdout);
  // Not fmt::print, which throws where the stream cannot be written to.
  const std::string line = fmt::format("gradcube: {}\n", message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// CLI11 writes some of its messages over several lines.
std::string one_line(std::string text) {
  for (char& letter : text) {
    if (letter == '\n') letter = ' ';
  }
  text.erase(text.find_last_not_of(" .") + 1);
  return text;
}

std::string command_of(const CLI::App& tool) {
  for (const CLI::App* command : tool.get_subcommands())
    return tool.get_name() + " " + command->get_name();
  return tool.get_name();
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App tool("A cluster of Gradcube daemons: start it, look at it, measure it.", "gradcube");
  tool.set_version_flag("--version", "gradcube " GRADCUBE_VERSION);
  tool.require_subcommand(0, 1);  // none is told below, in a message that lists them
  tool.footer(
      "Examples:\n"
      "  gradcube up --topology bcube:3,2 --rate 200mbit     nine servers on this host\n"
      "  gradcube perf allreduce --sizes 1K,12.5M --check    measure them, and check every bit\n"
      "  gradcube status\n"
      "  gradcube down\n"
      "\n"
      "The cluster lives in the run directory: $GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube, "
      "else\n"
      "/tmp/gradcube-$UID. Exit codes: 0 done, 1 failed, 2 the command line is wrong.");
  Action action;
  add_up(tool, action);
  add_down(tool, action);
  add_status(tool, action);
  add_impair(tool, action);
  add_plan(tool, action);
  add_perf(tool, action);
  add_doctor(tool, action);
  try {
    tool.parse(argc, argv);
    if (!action) {
      throw control::UsageError(
          "a command is missing; accepted are up, down, status, impair, plan, perf and doctor: "
          "`gradcube --help` tells more");
    }
    return action();
  } catch (const CLI::Success& asked) {  // --help, --version
    return tool.exit(asked);
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{}; `{} --help` tells what is accepted", one_line(error.what()),
                         command_of(tool)));
    return kExitUsage;
  } catch (const control::UsageError& error) {
    complain(error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    complain(error.what());
    return kExitFailure;
  }
}

}  // namespace gradcube::cli
