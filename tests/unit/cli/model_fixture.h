// The commands of `gradcube model`, by what comes behind the words that they begin with.
#ifndef GRADCUBE_TESTS_UNIT_CLI_MODEL_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_CLI_MODEL_FIXTURE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {

class ModelCommandLine : public CommandLine {
 protected:
  explicit ModelCommandLine(std::vector<std::string> words = {"model"})
      : words_(std::move(words)) {}

  std::string output(const std::vector<std::string>& arguments) {
    return CommandLine::output(behind_words(arguments));
  }

  nlohmann::json rows(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    return nlohmann::json::parse(output(arguments))["rows"];
  }

  void refuse(const std::vector<std::string>& arguments, const std::string& what) {
    expect_usage_error(behind_words(arguments), what);
  }

 private:
  std::vector<std::string> behind_words(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), words_.begin(), words_.end());
    return arguments;
  }

  std::vector<std::string> words_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_TESTS_UNIT_CLI_MODEL_FIXTURE_H_
