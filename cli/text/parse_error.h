// What the user reads when the command line cannot be parsed: in our words where CLI11's speak of
// its own types.
#ifndef GRADCUBE_CLI_TEXT_PARSE_ERROR_H_
#define GRADCUBE_CLI_TEXT_PARSE_ERROR_H_

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::cli {

// "up, down, ...": all commands of the tool, or of a command that has some.
std::string command_list(const CLI::App& tool);

// Which word of the command line is no command; empty if none is expected, or all are some.
std::string unknown_command(const CLI::App& tool);

// One line; names what is wrong, what was perhaps meant, and where to read more.
std::string parse_message(const CLI::App& tool, const CLI::ParseError& error);

// The candidate with the fewest letters to insert, remove or replace (Levenshtein's distance);
// empty when even that one has more than a third of the word's letters wrong.
std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_PARSE_ERROR_H_
