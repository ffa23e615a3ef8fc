// What the user reads when the command line cannot be parsed: in our words where CLI11's speak of
// its own types.
#ifndef GRADCUBE_CLI_TEXT_PARSE_ERROR_H_
#define GRADCUBE_CLI_TEXT_PARSE_ERROR_H_

#include <CLI/App.hpp>
#include <string>

namespace gradcube::cli {

// "up, down, ...": all commands of the tool, or of a command that has some.
std::string command_list(const CLI::App& tool);

// Which word of the command line is no command; empty if none is expected, or all are some.
std::string unknown_command(const CLI::App& tool);

// One line; names what is wrong, what was perhaps meant, and where to read more.
std::string parse_message(const CLI::App& tool, const CLI::ParseError& error);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_PARSE_ERROR_H_
