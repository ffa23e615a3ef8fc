#include "cli/command_line.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/cluster_hosts.h"
#include "cli/launch/host_group.h"
#include "cli/launch/launch_process.h"
#include "cli/model/python.h"
#include "cli/text/command.h"
#include "cli/text/output.h"
#include "cli/text/parse_error.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

void add_commands(CLI::App& tool, Action& action, const std::vector<std::string>& words) {
  add_up(tool, action);
  add_down(tool, action);
  add_setup(tool, action);
  add_keygen(tool, action);
  add_rekey(tool, action);
  add_status(tool, action);
  add_impair(tool, action);
  add_plan(tool, action);
  add_paths(tool, action);
  add_check(tool, action);
  add_perf(tool, action);
  add_run(tool, action, words);
  add_model(tool, action);
  add_checkpoint(tool, action);
  add_doctor(tool, action);
  add_quickstart(tool, action);
  add_at_host(tool, action);
}

// MASTER_PORT of a run on several hosts: below those that kernels give to others.
constexpr std::uint32_t kFirstPort = 20000;
constexpr std::uint32_t kPorts = 12000;

constexpr const char* kToolFooter =
    "Examples:\n"
    "  gradcube up --topology bcube:3,2 --rate 200mbit     start nine servers on this host\n"
    "  gradcube perf allreduce --sizes 1K,12.5M --check    measure them, check every bit\n"
    "  gradcube run -- python3 train.py                    start a trainer for each server\n"
    "  gradcube status                                     see what runs\n"
    "  gradcube down                                       end it\n"
    "  gradcube up --hosts node1,node2,node3               the same on several hosts, by ssh\n"
    "\n"
    "The cluster lives in the run directory: $GRADCUBE_RUN, else $XDG_RUNTIME_DIR/gradcube,\n"
    "else /tmp/gradcube-$UID. Exit codes: 0 done, 1 failed, 2 the command line is wrong; after\n"
    "Ctrl-C 130, as a shell tells it (SIGINT); of `run`, those of what it ran.";

// CLI11 would take the next word for the value of "--name=".
void refuse_empty_values(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.ends_with('=')) {
      throw control::UsageError(fmt::format("{}: the value is empty",
                                            control::printable(word.substr(0, word.size() - 1))));
    }
  }
}

// Where "--" stands in `gradcube run ... -- COMMAND ARGS...`; else argc.
int end_of_own_words(int argc, const char* const* argv) {
  if (argc < 2 || argv[1] != std::string_view("run")) return argc;
  return static_cast<int>(std::find(argv + 2, argv + argc, std::string_view("--")) - argv);
}

bool has_flag(const std::vector<std::string>& words, const std::string& flag) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word == flag || word.starts_with(flag + "=");
  });
}

// What to run on all hosts, whose logins do not know the virtual environment that is active here:
// the path of a program in it.
std::string command_on_hosts(const std::string& word) {
  const char* environment = std::getenv("VIRTUAL_ENV");
  if (environment == nullptr || *environment == '\0') return word;
  try {
    const std::string file = find_command(word, std::getenv("PATH"));
    return file.starts_with(fmt::format("{}/", environment)) ? file : word;
  } catch (const CommandError&) {
    return word;  // it may be there
  }
}

// Where `up` has started daemons on several hosts, these commands run on all of them.
std::optional<int> run_everywhere(CLI::App& tool, int argc, const char* const* argv,
                                  const std::vector<std::string>& command) {
  const std::string_view name = argv[1];
  if (name != "perf" && name != "run" && name != "status") return std::nullopt;
  const auto directory = control::RunDirectory::from_environment();
  const auto hosts = hosts_to_ask(directory);
  if (!hosts || (name == "run" && command.empty())) return std::nullopt;
  std::vector<std::string> words(argv + 1, argv + argc);
  const CLI::Option* const own_grace = tool.get_subcommand("run")->get_option("--grace");
  const std::chrono::nanoseconds grace(control::parse_duration(
      own_grace->empty() ? kDefaultGrace : own_grace->as<std::string>(), "--grace"));
  if (name == "status") {
    // Each of them knows all.
    if (directory.living_daemon()) return std::nullopt;
    if (!has_flag(words, "--all")) words.emplace_back("--all");
    int code = 0;
    for (const std::size_t host : hosts->all()) {
      code = run_on_hosts(*hosts, words, {host}, grace);
      if (code == 0 || code == kExitUsage) break;
    }
    return code;
  }
  const std::uint32_t number = std::random_device()();
  if (name == "perf" && !has_flag(words, "--job")) {
    words.push_back(fmt::format("--job=perf-{:08x}", number));
  }
  if (name == "run") {
    if (!has_flag(words, "--port")) {
      words.push_back(fmt::format("--port={}", kFirstPort + number % kPorts));
    }
    words.emplace_back("--");
    words.push_back(command_on_hosts(command.front()));
    words.insert(words.end(), command.begin() + 1, command.end());
  }
  return run_on_hosts(*hosts, words, hosts->all(), grace);
}

// CLI11 takes any value behind a flag's "=" for true.
void refuse_values_of_flags(CLI::App& tool) {
  for (CLI::Option* option : tool.get_options()) {
    if (option->get_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* command : tool.get_subcommands(nullptr)) refuse_values_of_flags(*command);
}

// Parses and runs; the exit code of the command.
int run(CLI::App& tool, const Action& action, int argc, const char* const* argv,
        const std::vector<std::string>& words) {
  refuse_empty_values(argc, argv);
  refuse_values_of_flags(tool);
  try {
    tool.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    if (const std::string wrong = unknown_command(tool); !wrong.empty()) {
      throw control::UsageError(wrong);
    }
    std::ostringstream text;
    const int code = tool.exit(asked, text);
    write_output(text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    throw control::UsageError(parse_message(tool, error));
  }
  if (!action) {
    throw control::UsageError(
        fmt::format("a command is missing; the commands are {}: `gradcube --help` tells more",
                    command_list(tool)));
  }
  if (const auto code = run_everywhere(tool, argc, argv, words)) return *code;
  return action();
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  std::vector<std::string> model_words;
  const bool is_for_models = read_model_words(argc, argv, model_words);
  CLI::App tool("Starts a Gradcube cluster on this host or on several, shows it and measures it.",
                "gradcube");
  tool.set_version_flag("--version", "gradcube " GRADCUBE_VERSION);
  tool.require_subcommand(0, 1);  // run() has a better message for 0
  tool.footer(kToolFooter);
  Action action;
  const int own = end_of_own_words(argc, argv);
  const std::vector<std::string> words(argv + std::min(own + 1, argc), argv + argc);
  add_commands(tool, action, words);
  try {
    if (is_for_models) become_python(kModelsModule, model_words);
    const int code = run(tool, action, own, argv, words);
    flush_output();
    return code;
  } catch (const control::UsageError& error) {
    complain(error.what());
    return kExitUsage;
  } catch (const NothingToDoHere&) {
    return 0;
  } catch (const std::exception& error) {
    complain(error.what());
    return kExitFailure;
  }
}

}  // namespace gradcube::cli
