// Checks of option values that CLI11 does not have.
#ifndef GRADCUBE_CLI_TEXT_OPTION_CHECKS_H_
#define GRADCUBE_CLI_TEXT_OPTION_CHECKS_H_

#include <CLI/App.hpp>

namespace gradcube::cli {

// A finite number of seconds. CLI::Range takes "nan" for a number in range.
CLI::Validator seconds_in(double least, double most);

// A finite number.
CLI::Validator number_in(double least, double most);

// A whole number. CLI::Range calls 1.5 out of range.
CLI::Validator whole_number_in(unsigned least, unsigned most);

// `--cluster ""` is most often an unset variable of a script, and never means "not given".
CLI::Validator not_empty();

// A name that a trainer can give to a job.
CLI::Validator job_name();

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_OPTION_CHECKS_H_
