// Options, and checks of their values, that CLI11 does not have.
#ifndef GRADCUBE_CLI_TEXT_OPTION_CHECKS_H_
#define GRADCUBE_CLI_TEXT_OPTION_CHECKS_H_

#include <CLI/App.hpp>
#include <string>
#include <type_traits>

namespace gradcube::cli {

// A finite number of seconds, which 500ms becomes, too: for transform(), which lets it. CLI::Range
// takes "nan" for a number in range.
CLI::Validator seconds_in(double least, double most);

// A finite number.
CLI::Validator number_in(double least, double most);

// A whole number. CLI::Range calls 1.5 out of range.
CLI::Validator whole_number_in(unsigned least, unsigned most);

// `--cluster ""` is most often an unset variable of a script, and never means "not given".
CLI::Validator not_empty();

// An option with one value, or several where it is repeated, that are not empty; the help shows its
// default if it has one.
template <typename T>
CLI::Option* add_text(CLI::App* command, const char* name, T& value, const std::string& help) {
  CLI::Option* option = command->add_option(name, value, help)->check(not_empty());
  if constexpr (!std::is_same_v<T, std::string>) option->allow_extra_args(false);
  return value.empty() ? option : option->capture_default_str();
}

// A whole number, whose default the help shows.
CLI::Option* add_number(CLI::App* command, const char* name, unsigned& value, unsigned least,
                        unsigned most, const std::string& help);

// A name that a trainer can give to a job.
CLI::Validator job_name();

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_OPTION_CHECKS_H_
